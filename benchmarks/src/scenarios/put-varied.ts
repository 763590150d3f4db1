import { generatorRequests, generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails, withCost } from '../load/load-cost.ts';
import { expectWork, unaryRequests } from '../load/unary-load.ts';
import { h2loadConnections, h2loadStreams } from '../load/h2load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeCountOf, rangeRequest, revisionOf } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const distinctKeys = 100_000;
const keyDigits = 15;
const value = 'v'.repeat(64);
/** The offset of the key in a framed put: after gRPC's prefix, the field's tag and its length. */
const keyOffset = 7;

export const putVaried: Scenario = {
  name: 'put-varied',
  work: 'Put, durable, over 100,000 keys in random order',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.3 },
  async measure(server, { quick }) {
    const requests = unaryRequests(quick);
    const framed = frame(putRequest(keyOf(0), value));
    let last = 0;
    const touched = new Set<number>();
    const framedRequest = (): Buffer => {
      // A full-period generator (Hull and Dobell): the same order of keys for every server.
      last = (last * 21 + 7919) % distinctKeys;
      touched.add(last);
      framed.write(keyOf(last), keyOffset, 'latin1');
      return framed;
    };
    const load = { address: server.address, path: methods.put, framedRequest };
    const sizes = { connections: h2loadConnections, streamsPerConnection: h2loadStreams };
    const connection = await GrpcConnection.open(server.address);
    const before = revisionOf(await connection.unary(methods.range, rangeRequest('k')));
    const warmUp = requests / 5;
    await runFrameLoad({ ...load, ...sizes, requests: warmUp });
    const { result, costUs } = await withCost(server, requests, () => runFrameLoad({ ...load, ...sizes, requests }));
    const all = await connection.unary(methods.range, rangeRequest('k', { rangeEnd: 'l', countOnly: true }));
    expectWork('revisions', revisionOf(all) - before, requests + warmUp);
    expectWork('keys', rangeCountOf(all), touched.size);
    const total = generatorRequests(quick);
    const put = ['put', '--key-size=16', '--val-size=64', `--key-space-size=${distinctKeys}`, `--total=${total}`];
    const details = await generatorDetails(server, total, [...generatorSizes, ...put]);
    const end = revisionOf(await connection.unary(methods.range, rangeRequest('k')));
    if (Object.keys(details).length > 0) expectWork('revisions', end - revisionOf(all), total);
    connection.close();
    return { value: result.perSecond, details: { [costDetail]: costUs, ...details } };
  },
};

function keyOf(index: number): string {
  return `k${String(index).padStart(keyDigits, '0')}`;
}
