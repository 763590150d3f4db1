import { generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails } from '../load/load-cost.ts';
import { expectWork, unaryLoad } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeCountOf, rangeRequest } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const keys = 1000;
const end = 'l';

/** Replies of some 120 kB. */
export const rangeThousandKeys: Scenario = {
  name: 'range-1000',
  work: 'Range of 1,000 keys, linearizable',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  async measure(server, { quick }) {
    const { address } = server;
    const framedRequest = (index: number) => frame(putRequest(`k${String(index).padStart(15, '0')}`, 'v'.repeat(64)));
    const sizes = { connections: 4, streamsPerConnection: 100 };
    await runFrameLoad({ ...sizes, address, path: methods.put, requests: keys, framedRequest });
    const connection = await GrpcConnection.open(address);
    const message = rangeRequest('k', { rangeEnd: end });
    const reply = await connection.unary(methods.range, message);
    connection.close();
    expectWork('keys', rangeCountOf(reply), keys);
    const requests = quick ? 1_000 : 10_000;
    const { perSecond, costUs, dataBytes } = await unaryLoad(server, 'range', message, requests);
    expectWork('bytes of replies', dataBytes, requests * frame(reply).length);
    const range = ['range', 'k', end, `--total=${requests}`];
    const details = await generatorDetails(server, requests, [...generatorSizes, ...range]);
    return { value: perSecond, details: { [costDetail]: costUs, ...details } };
  },
};
