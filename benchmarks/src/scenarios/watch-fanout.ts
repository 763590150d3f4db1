import { runGenerator } from '../load/etcd-generator.ts';
import { costDetail, generatorDetails, summaryAt, withCost } from '../load/load-cost.ts';
import { percentile } from '../load/percentile.ts';
import { WatcherCrowd } from '../load/watcher-crowd.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';
import { methods, putRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const key = 'watched';
const sizes = { connections: 10, streamsPerConnection: 10, watchersPerStream: 100 };
const watchers = 10_000;
const p99Detail = 'p99 from a put to its event, ms';

export const watchFanout: Scenario = {
  name: 'watch-fanout',
  work: 'Events to 10,000 watchers of one key, on 100 streams, one put at a time',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  furtherRows: [
    {
      name: 'watch-fanout-p99',
      work: 'Events to 10,000 watchers of one key: p99 from the put to the event',
      unit: 'ms',
      target: { kind: 'ratioAtMost', bound: 1 },
      detail: p99Detail,
    },
  ],
  async measure(server, { quick }) {
    const puts = quick ? 20 : 200;
    const crowd = new WatcherCrowd({ address: server.address, ...sizes, keyOf: () => key });
    const connection = await GrpcConnection.open(server.address);
    try {
      await crowd.open();
      await crowd.create();
      const warmUp = puts / 5;
      await putAll(connection, crowd, warmUp);
      const { result, costUs } = await withCost(server, puts * watchers, () => putAll(connection, crowd, puts));
      crowd.expectEach(warmUp + puts);
      crowd.close();
      const details = {
        [costDetail]: costUs,
        [p99Detail]: percentile(result.latenciesMs, 0.99),
        'p50 from a put to its event, ms': percentile(result.latenciesMs, 0.5),
      };
      return { value: result.perSecond, details: { ...details, ...(await generatorEvents(server, quick)) } };
    } finally {
      crowd.close();
      connection.close();
    }
  },
};

/** The next put is sent when each watcher has the event of the one before. */
async function putAll(
  connection: GrpcConnection,
  crowd: WatcherCrowd,
  puts: number,
): Promise<{ perSecond: number; latenciesMs: readonly number[] }> {
  const latenciesMs: number[] = [];
  const startedMs = performance.now();
  for (let put = 0; put < puts; put += 1) {
    const sentMs = performance.now();
    const arrivals = crowd.oneEventEach();
    await connection.unary(methods.put, putRequest(key, 'v'.repeat(64)));
    for (const arrivalMs of await arrivals) latenciesMs.push(arrivalMs - sentMs);
  }
  return { perSecond: (puts * watchers) / ((performance.now() - startedMs) / 1000), latenciesMs };
}

/** The same numbers of streams and watchers: events at full rate, then their latency at a rate that both sustain. */
async function generatorEvents(server: MeasuredServer, quick: boolean): Promise<Readonly<Record<string, number>>> {
  const clients = [`--conns=${sizes.connections}`, `--clients=${sizes.connections}`];
  const streams = `--streams=${sizes.connections * sizes.streamsPerConnection}`;
  const puts = quick ? 10 : 100;
  const watch = ['watch', streams, `--watch-per-stream=${sizes.watchersPerStream}`, `--put-total=${puts}`];
  const rate = await generatorDetails(server, puts * watchers, [...clients, ...watch], 1);
  const watchLatency = [
    ...['watch-latency', streams, `--watchers-per-stream=${sizes.watchersPerStream}`],
    ...['--put-rate=2', `--put-total=${quick ? 4 : 20}`, '--val-size=64'],
  ];
  const latency = await runGenerator(server.address, [...clients, ...watchLatency]);
  if (latency === undefined) return rate;
  return { ...rate, "p99 with etcd's client at two puts a second, ms": summaryAt(latency, 1).p99Ms };
}
