import { generatorRequests, generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails, withCost } from '../load/load-cost.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, putsRequest, rangeRequest, revisionOf, versionsOf } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const putsPerTxn = 4;
const distinctTxns = 2_500;
/** As many concurrent requests as h2load sends; the larger ones need more windows. */
const sizes = { connections: 16, streamsPerConnection: 50 };

/** Transaction `index` puts keys that no other of the distinct transactions puts. */
function txnOf(index: number): Buffer {
  const puts = Array.from({ length: putsPerTxn }, (_, put) => {
    const key = `k${String(index * putsPerTxn + put).padStart(15, '0')}`;
    return putRequest(key, 'v'.repeat(64));
  });
  return frame(putsRequest(puts));
}

export const txnPuts: Scenario = {
  name: 'txn-puts',
  work: 'Txn of 4 puts, over 10,000 keys',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  async measure(server, { quick }) {
    const { address } = server;
    const framed = Array.from({ length: distinctTxns }, (_, index) => txnOf(index));
    const framedRequest = (index: number) => framed[index % distinctTxns] ?? Buffer.alloc(0);
    const load = { ...sizes, address, path: methods.txn, framedRequest };
    const requests = quick ? 10_000 : 100_000;
    const connection = await GrpcConnection.open(address);
    const all = () => connection.unary(methods.range, rangeRequest('k', { rangeEnd: 'l' }));
    const before = revisionOf(await all());
    await runFrameLoad({ ...load, requests: requests / 5 });
    const { result, costUs } = await withCost(server, requests, () => runFrameLoad({ ...load, requests }));
    const reply = await all();
    connection.close();
    const txns = requests + requests / 5;
    expectWork('revisions', revisionOf(reply) - before, txns);
    const puts = versionsOf(reply).reduce((sum, version) => sum + version, 0);
    expectWork('puts', puts, txns * putsPerTxn);
    const total = generatorRequests(quick);
    const txnPut = [
      ...['txn-put', `--txn-ops=${putsPerTxn}`, '--key-size=16', '--val-size=64'],
      ...[`--key-space-size=${distinctTxns * putsPerTxn}`, `--total=${total}`],
    ];
    const details = await generatorDetails(server, total, [...generatorSizes, ...txnPut]);
    return { value: result.perSecond, details: { [costDetail]: costUs, ...details } };
  },
};
