import { generatorRequests, generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails } from '../load/load-cost.ts';
import { expectWork, unaryLoad, unaryRequests } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeCountOf, rangeRequest } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const key = 'k'.repeat(16);

export function rangeOneKey(consistency: 'linearizable' | 'serializable', leastRatio: number): Scenario {
  return {
    name: `range-${consistency}`,
    work: `Range of one key, ${consistency}`,
    unit: '1/s',
    rounds: 3,
    target: { kind: 'ratioAtLeast', bound: leastRatio },
    async measure(server, { quick }) {
      const connection = await GrpcConnection.open(server.address);
      await connection.unary(methods.put, putRequest(key, 'v'.repeat(64)));
      const message = rangeRequest(key, { serializable: consistency === 'serializable' });
      const reply = await connection.unary(methods.range, message);
      connection.close();
      expectWork('keys', rangeCountOf(reply), 1);
      const requests = unaryRequests(quick);
      const { perSecond, costUs, dataBytes } = await unaryLoad(server, 'range', message, requests);
      // A reply without the key, or an error, is shorter: the bytes received prove that each read found it.
      expectWork('bytes of replies', dataBytes, requests * frame(reply).length);
      const total = generatorRequests(quick);
      const range = ['range', key, `--consistency=${consistency[0]}`, `--total=${total}`];
      const details = await generatorDetails(server, total, [...generatorSizes, ...range]);
      return { value: perSecond, details: { [costDetail]: costUs, ...details } };
    },
  };
}
