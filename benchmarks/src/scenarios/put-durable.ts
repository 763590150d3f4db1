import { expectWork, unaryLoad } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeRequest, revisionOf } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const key = 'k'.repeat(16);
const value = 'v'.repeat(64);

export const putDurable: Scenario = {
  name: 'put-durable',
  work: 'Put, durable: one 16-byte key, 64-byte value',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 0.5 },
  withEmptyHandler: true,
  async measure(server, { quick }) {
    const message = putRequest(key, value);
    if (server.kind.name === 'empty handler') {
      return { value: (await unaryLoad(server, 'put', message, quick)).perSecond };
    }
    const connection = await GrpcConnection.open(server.address);
    const before = revisionOf(await connection.unary(methods.range, rangeRequest(key)));
    const { perSecond, requestsWithWarmUp } = await unaryLoad(server, 'put', message, quick);
    const after = revisionOf(await connection.unary(methods.range, rangeRequest(key)));
    connection.close();
    expectWork('revisions', after - before, requestsWithWarmUp);
    return { value: perSecond };
  },
};
