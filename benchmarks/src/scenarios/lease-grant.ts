import { expectWork, unaryLoad } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { leaseCountOf, leaseGrantRequest, methods } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const ttlSeconds = 3600;

export const leaseGrant: Scenario = {
  name: 'lease-grant',
  work: 'LeaseGrant',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  async measure(server, { quick }) {
    const { perSecond, requestsWithWarmUp } = await unaryLoad(
      server,
      'leaseGrant',
      leaseGrantRequest(ttlSeconds),
      quick,
    );
    const connection = await GrpcConnection.open(server.address);
    const leases = leaseCountOf(await connection.unary(methods.leaseLeases, Buffer.alloc(0)));
    connection.close();
    expectWork('leases', leases, requestsWithWarmUp);
    return { value: perSecond };
  },
};
