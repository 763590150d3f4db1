import { DeletionWatch } from '../load/deletion-watch.ts';
import { attachKeys, grantLeases } from '../load/lease-load.ts';
import { runRenewals } from '../load/renewal-load.ts';
import type { Scenario } from '../scenario.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const ttlSeconds = 15;
const waitMs = 120_000;

/**
 * Renews all leases at once, so that they expire within a second of each other. Measures the time from the last
 * deadline until the last key is deleted; none may be deleted before its deadline.
 */
export const expiryBurst: Scenario = {
  name: 'expiry-burst',
  work: 'Expiry of 20,000 leases due in the same second: until the last key is gone',
  unit: 's',
  rounds: 1,
  target: { kind: 'ratioAtMost', bound: 0.1 },
  async measure(server, { quick }) {
    const leases = quick ? 2000 : 20_000;
    await grantLeases(server, { last: leases, ttlSeconds });
    await attachKeys(server, leases);
    const watching = await GrpcConnection.open(server.address);
    const watch = await DeletionWatch.open(watching, leases);
    const sentMs = performance.now();
    const leaseOf = (index: number) => index + 1;
    await runRenewals({ address: server.address, leases, ttlSeconds, leaseOf, renewals: leases });
    const renewedMs = performance.now();
    if (watch.deletedAtMs.size > 0)
      throw new Error('a lease expired before the renewals: the machine is too slow for this');
    await watch.wait(waitMs);
    const first = Math.min(...watch.deletedAtMs.values()) - ttlSeconds * 1000;
    const last = Math.max(...watch.deletedAtMs.values()) - ttlSeconds * 1000;
    watching.close();
    if (first < sentMs) throw new Error(`a lease expired ${(sentMs - first).toFixed(0)} ms before its time`);
    const spreadMs = renewedMs - sentMs;
    return { value: (last - renewedMs) / 1000, details: { 'deadlines spread over, ms': spreadMs } };
  },
};
