import { grantLeases } from '../load/lease-load.ts';
import { costDetail, withCost } from '../load/load-cost.ts';
import { runRenewals } from '../load/renewal-load.ts';
import type { Scenario } from '../scenario.ts';

const leases = 1000;
const ttlSeconds = 600;

export const keepAlive: Scenario = {
  name: 'keep-alive',
  work: 'KeepAlive, 1000 leases on one stream',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 30 },
  async measure(server, { quick }) {
    await grantLeases(server, { last: leases, ttlSeconds });
    const load = { address: server.address, leases, ttlSeconds, leaseOf: (index: number) => (index % leases) + 1 };
    const renewals = quick ? 50_000 : 500_000;
    await runRenewals({ ...load, renewals: renewals / 5 });
    const { result, costUs } = await withCost(server, renewals, () => runRenewals({ ...load, renewals }));
    return { value: result, details: { [costDetail]: costUs } };
  },
};
