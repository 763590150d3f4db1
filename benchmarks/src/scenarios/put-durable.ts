import { generatorRequests, generatorSizes } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails } from '../load/load-cost.ts';
import { expectWork, unaryLoad, unaryRequests } from '../load/unary-load.ts';
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
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  withEmptyHandler: true,
  async measure(server, { quick }) {
    const message = putRequest(key, value);
    const requests = unaryRequests(quick);
    if (server.kind.name === 'empty handler') {
      const { perSecond, costUs } = await unaryLoad(server, 'put', message, requests);
      return { value: perSecond, details: { [costDetail]: costUs } };
    }
    const connection = await GrpcConnection.open(server.address);
    const revision = async () => revisionOf(await connection.unary(methods.range, rangeRequest(key)));
    const before = await revision();
    const { perSecond, costUs, requestsWithWarmUp } = await unaryLoad(server, 'put', message, requests);
    const after = await revision();
    expectWork('revisions', after - before, requestsWithWarmUp);
    const total = generatorRequests(quick);
    const put = ['put', '--key-size=16', '--val-size=64', `--total=${total}`];
    const details = await generatorDetails(server, total, [...generatorSizes, ...put]);
    if (Object.keys(details).length > 0) expectWork('revisions', (await revision()) - after, total);
    connection.close();
    return { value: perSecond, details: { [costDetail]: costUs, ...details } };
  },
};
