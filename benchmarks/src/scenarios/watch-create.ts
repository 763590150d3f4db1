import { costDetail, generatorDetails, withCost } from '../load/load-cost.ts';
import { WatcherCrowd } from '../load/watcher-crowd.ts';
import type { Scenario } from '../scenario.ts';

const connections = 10;
const keys = 10_000;
const generatorStreams = 100;

export const watchCreate: Scenario = {
  name: 'watch-create',
  work: 'Watchers created, each of one of 10,000 keys, on 10 connections with one stream each',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  async measure(server, { quick }) {
    const watchersPerStream = quick ? 1_000 : 10_000;
    const keyOf = (index: number) => `k${String(index % keys).padStart(15, '0')}`;
    const createAll = async (perStream: number) => {
      const crowd = new WatcherCrowd({
        address: server.address,
        connections,
        streamsPerConnection: 1,
        watchersPerStream: perStream,
        keyOf,
      });
      try {
        await crowd.open();
        const startedMs = performance.now();
        await crowd.create();
        return crowd.size / ((performance.now() - startedMs) / 1000);
      } finally {
        crowd.close();
      }
    };
    await createAll(watchersPerStream / 5);
    const watchers = connections * watchersPerStream;
    const { result, costUs } = await withCost(server, watchers, () => createAll(watchersPerStream));
    const perStream = quick ? 100 : 1_000;
    const watch = [
      ...[`--conns=${connections}`, `--clients=${connections}`, 'watch', '--put-total=1', '--sequential-keys'],
      ...[`--streams=${generatorStreams}`, `--watch-per-stream=${perStream}`],
      ...['--key-size=16', `--key-space-size=${keys}`, `--watched-key-total=${keys}`],
    ];
    const details = await generatorDetails(server, generatorStreams * perStream, watch);
    return { value: result, details: { [costDetail]: costUs, ...details } };
  },
};
