import { costDetail } from '../load/load-cost.ts';
import { expectWork, unaryLoad, unaryRequests } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { leaseCountOf, leaseGrantRequest, methods } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const ttlSeconds = 3600;

export const leaseGrant: Scenario = {
  name: 'lease-grant',
  work: 'LeaseGrant',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 3 },
  async measure(server, { quick }) {
    const message = leaseGrantRequest(ttlSeconds);
    const load = await unaryLoad(server, 'leaseGrant', message, unaryRequests(quick));
    const connection = await GrpcConnection.open(server.address);
    const leases = leaseCountOf(await connection.unary(methods.leaseLeases, Buffer.alloc(0)));
    connection.close();
    expectWork('leases', leases, load.requestsWithWarmUp);
    return { value: load.perSecond, details: { [costDetail]: load.costUs } };
  },
};
