import { generatorRequests, generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails, withCost } from '../load/load-cost.ts';
import { SwapLoad } from '../load/swap-load.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, rangeRequest, versionsOf } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const keys = 1000;

export const stm: Scenario = {
  name: 'stm',
  work: 'Compare and swap over 1,000 keys in random order: swaps',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.2 },
  async measure(server, { quick }) {
    const requests = quick ? 10_000 : 100_000;
    const load = new SwapLoad(server.address, keys);
    await load.run(requests / 5);
    const before = load.swaps;
    const { result, costUs } = await withCost(server, requests, () => load.run(requests));
    const share = (load.swaps - before) / requests;
    // A lost swap, or one on a revision that was not the last, would show in the versions.
    const connection = await GrpcConnection.open(server.address);
    const versions = versionsOf(await connection.unary(methods.range, rangeRequest('k', { rangeEnd: 'l' })));
    connection.close();
    expectWork('keys', versions.length, keys);
    const swapped = versions.reduce((sum, version) => sum + version, 0);
    expectWork('swaps', swapped, load.swaps);
    const total = generatorRequests(quick);
    const swap = ['stm', `--keys=${keys}`, '--txn-wr-percent=100', '--val-size=64', `--total=${total}`];
    const details = await generatorDetails(server, total, [...generatorSizes, ...swap]);
    return { value: result * share, details: { [costDetail]: costUs, 'share that swapped': share, ...details } };
  },
};
