import { grantLeases } from '../load/lease-load.ts';
import { runRenewals } from '../load/renewal-load.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';
import { leaseCountOf, methods } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const fewLeases = 1000;
const ttlSeconds = 3600;
const mebibyte = 1024 * 1024;
/** Time for a restarted server to return the memory of its start, before its memory counts. */
const settleMs = 3_000;
const bytesDetail = 'memory after a kill and a restart above that of the empty server, bytes a lease';
const killedDetail = 'restart after kill -9, s';

/** Compared with itself: the rate with 1,000,000 leases relative to 1,000, renewed in scattered order. */
export const millionLeases: Scenario = {
  name: 'million-leases',
  work: '1,000,000 leases held: rate of renewals, as a share of that with 1,000',
  unit: 'ratio',
  rounds: 1,
  target: { kind: 'valueAtLeast', bound: 0.5 },
  furtherRows: [
    {
      name: 'million-leases-memory',
      work: '1,000,000 leases, server killed and restarted: memory for each lease',
      unit: 'bytes',
      target: { kind: 'valueAtMost', bound: 225 },
      detail: bytesDetail,
    },
    {
      name: 'million-leases-restart',
      work: '1,000,000 leases, server killed with SIGKILL: from its start until it answers',
      unit: 's',
      target: { kind: 'valueAtMost', bound: 2 },
      detail: killedDetail,
    },
  ],
  async measure(server, { quick, log }) {
    const leases = quick ? 20_000 : 1_000_000;
    const renewals = quick ? 50_000 : 500_000;
    const emptyBytes = server.rssBytes();
    await grantLeases(server, { last: fewLeases, ttlSeconds });
    const load = { address: server.address, leases, ttlSeconds };
    const few = (index: number) => (index % fewLeases) + 1;
    await runRenewals({ ...load, leaseOf: few, renewals: renewals / 5 });
    const fewRate = await runRenewals({ ...load, leaseOf: few, renewals });
    await grantLeases(server, { first: fewLeases + 1, last: leases, ttlSeconds });
    log(`${leases} leases granted`);
    // A step that is coprime to the count visits every lease, and never two neighbours in a row.
    const scattered = (index: number) => ((index * 377_777) % leases) + 1;
    const manyRate = await runRenewals({ ...load, leaseOf: scattered, renewals });
    const rssBytes = server.rssBytes();
    log('killing and restarting');
    await server.restart('SIGKILL');
    const killedRestartMs = server.startMs;
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const restartedBytes = server.rssBytes();
    expectWork('leases after the kill', await countLeases(server), leases);
    log('restarting');
    await server.restart('SIGTERM');
    const restartMs = server.startMs;
    expectWork('leases after the restart', await countLeases(server), leases);
    return {
      value: manyRate / fewRate,
      details: {
        'renewals with 1,000, 1/s': fewRate,
        'renewals with all, 1/s': manyRate,
        'memory, MiB': rssBytes / mebibyte,
        'memory after the kill and restart, MiB': restartedBytes / mebibyte,
        [bytesDetail]: (restartedBytes - emptyBytes) / leases,
        [killedDetail]: killedRestartMs / 1000,
        'restart, s': restartMs / 1000,
      },
    };
  },
};

async function countLeases({ address }: MeasuredServer): Promise<number> {
  const connection = await GrpcConnection.open(address);
  try {
    return leaseCountOf(await connection.unary(methods.leaseLeases, Buffer.alloc(0)));
  } finally {
    connection.close();
  }
}
