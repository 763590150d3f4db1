import { DeletionWatch } from '../load/deletion-watch.ts';
import { leaseKey } from '../load/lease-load.ts';
import { percentile } from '../load/percentile.ts';
import type { Scenario } from '../scenario.ts';
import { leaseGrantRequest, methods, putRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const shortestTtlSeconds = 12;
const grantsPerTick = 20;
const tickMs = 20;
const graceMs = 60_000;

interface Deadline {
  readonly earliestMs: number;
  readonly latestMs: number;
}

/**
 * Leases with whole seconds of TTL, granted evenly at 1000 a second, expire evenly over the time. The lag counts from
 * the reply to the grant plus the TTL; no lease may expire before the sending of the grant plus the TTL.
 */
export const expiryLag: Scenario = {
  name: 'expiry-lag',
  work: 'Expiry lag, 10,000 leases spread over a minute: p99',
  unit: 'ms',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 20 },
  async measure(server, { quick }) {
    const leases = quick ? 1000 : 10_000;
    const spreadSeconds = quick ? 10 : 60;
    const connection = await GrpcConnection.open(server.address);
    const watching = await GrpcConnection.open(server.address);
    const watch = await DeletionWatch.open(watching, leases);
    const deadlines = new Map<number, Deadline>();
    for (let next = 1; next <= leases;) {
      const tick = new Promise((resolve) => setTimeout(resolve, tickMs));
      const ids = Array.from({ length: Math.min(grantsPerTick, leases - next + 1) }, (_, at) => next + at);
      next += ids.length;
      await Promise.all(ids.map(async (id) => deadlines.set(id, await grant(connection, id, spreadSeconds))));
      await tick;
    }
    if (watch.deletedAtMs.size > 0) throw new Error('leases expired while others were still granted');
    await watch.wait((shortestTtlSeconds + spreadSeconds) * 1000 + graceMs);
    connection.close();
    watching.close();
    const lags = [...watch.deletedAtMs].map(([id, atMs]) => lagMs(id, atMs, deadlines));
    return {
      value: percentile(lags, 0.99),
      details: { 'p50, ms': percentile(lags, 0.5), 'longest, ms': percentile(lags, 1) },
    };
  },
};

async function grant(connection: GrpcConnection, id: number, spreadSeconds: number): Promise<Deadline> {
  const ttlSeconds = shortestTtlSeconds + (id % spreadSeconds);
  const sentMs = performance.now();
  await connection.unary(methods.leaseGrant, leaseGrantRequest(ttlSeconds, id));
  const answeredMs = performance.now();
  await connection.unary(methods.put, putRequest(leaseKey(id), 'alive', id));
  return { earliestMs: sentMs + ttlSeconds * 1000, latestMs: answeredMs + ttlSeconds * 1000 };
}

function lagMs(id: number, deletedAtMs: number, deadlines: ReadonlyMap<number, Deadline>): number {
  const deadline = deadlines.get(id);
  if (deadline === undefined) throw new Error(`lease ${id} expired and was never granted`);
  if (deletedAtMs < deadline.earliestMs)
    throw new Error(`lease ${id} expired ${deadline.earliestMs - deletedAtMs} ms early`);
  return Math.max(0, deletedAtMs - deadline.latestMs);
}
