import { grantLeases } from '../load/lease-load.ts';
import { runRenewals } from '../load/renewal-load.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import { leaseCountOf, methods } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const fewLeases = 1000;
const ttlSeconds = 3600;
const mebibyte = 1024 * 1024;

/** Compared with itself: the rate with 1,000,000 leases relative to 1,000, renewed in scattered order. */
export const millionLeases: Scenario = {
  name: 'million-leases',
  work: '1,000,000 leases held: rate of renewals, as a share of that with 1,000',
  unit: 'ratio',
  rounds: 1,
  target: { kind: 'valueAtLeast', bound: 0.5 },
  async measure(server, { quick, log }) {
    const leases = quick ? 20_000 : 1_000_000;
    const renewals = quick ? 50_000 : 500_000;
    await grantLeases(server, { last: fewLeases, ttlSeconds });
    let connection = await GrpcConnection.open(server.address);
    const load = { connection, leases, ttlSeconds };
    const few = (index: number) => (index % fewLeases) + 1;
    await runRenewals({ ...load, leaseOf: few, renewals: renewals / 5 });
    const fewRate = await runRenewals({ ...load, leaseOf: few, renewals });
    await grantLeases(server, { first: fewLeases + 1, last: leases, ttlSeconds });
    log(`${leases} leases granted`);
    // A step that is coprime to the count visits every lease, and never two neighbours in a row.
    const scattered = (index: number) => ((index * 377_777) % leases) + 1;
    const manyRate = await runRenewals({ ...load, leaseOf: scattered, renewals });
    const rssBytes = server.rssBytes();
    connection.close();
    log('restarting');
    const restartMs = await server.restart();
    connection = await GrpcConnection.open(server.address);
    const found = leaseCountOf(await connection.unary(methods.leaseLeases, Buffer.alloc(0)));
    connection.close();
    expectWork('leases after the restart', found, leases);
    return {
      value: manyRate / fewRate,
      details: {
        'renewals with 1,000, 1/s': fewRate,
        'renewals with all, 1/s': manyRate,
        'memory, MiB': rssBytes / mebibyte,
        'restart, s': restartMs / 1000,
      },
    };
  },
};
