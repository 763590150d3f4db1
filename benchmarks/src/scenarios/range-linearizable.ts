import { expectWork, unaryLoad } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeCountOf, rangeRequest } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const key = 'k'.repeat(16);

export const rangeLinearizable: Scenario = {
  name: 'range-linearizable',
  work: 'Range of one key, linearizable',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 2 },
  async measure(server, { quick }) {
    const connection = await GrpcConnection.open(server.address);
    await connection.unary(methods.put, putRequest(key, 'v'.repeat(64)));
    const message = rangeRequest(key);
    const reply = await connection.unary(methods.range, message);
    expectWork('keys', rangeCountOf(reply), 1);
    const { perSecond, dataBytes, requests } = await unaryLoad(server, 'range', message, quick);
    connection.close();
    // A reply without the key, or an error, is shorter: the bytes received prove that each read found it.
    expectWork('bytes of replies', dataBytes, requests * frame(reply).length);
    return { value: perSecond };
  },
};
