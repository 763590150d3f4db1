import { grantLeases } from '../load/lease-load.ts';
import { generatorRequests } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails, withCost } from '../load/load-cost.ts';
import { runRenewalStreams } from '../load/renewal-streams.ts';
import type { Scenario } from '../scenario.ts';

const clients = 100;
const ttlSeconds = 600;

export const keepAliveStreams: Scenario = {
  name: 'keep-alive-streams',
  work: 'KeepAlive, 100 clients with one stream and one lease each, one renewal at a time',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 2 },
  async measure(server, { quick }) {
    await grantLeases(server, { last: clients, ttlSeconds });
    const renewals = quick ? 20_000 : 200_000;
    const load = { address: server.address, clients, ttlSeconds };
    await runRenewalStreams({ ...load, renewals: renewals / 5 });
    const { result, costUs } = await withCost(server, renewals, () => runRenewalStreams({ ...load, renewals }));
    const total = generatorRequests(quick);
    // Its client opens a stream for each renewal.
    const keepAlive = [`--conns=${clients}`, `--clients=${clients}`, 'lease-keepalive', `--total=${total}`];
    const details = await generatorDetails(server, total, keepAlive);
    return { value: result, details: { [costDetail]: costUs, ...details } };
  },
};
