import { CuttingProxy, hasPostgres, PostgresCluster, ServeProcess } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines, type TestedEngine } from './tested-engine.ts';

/** A supervisor that waits for 10 s, as many do, never has to kill a server on a machine that is not overloaded. */
const closeLimitMs = 8_000;
const patienceMs = 120_000;

interface Outage {
  readonly what: string;
  readonly begin: (engine: TestedEngine, line: CuttingProxy) => Promise<void> | void;
}

/** Each fault of an engine once. A silent engine causes no error. */
const outages: Readonly<Record<TestedEngine['kind'], Outage>> = {
  postgres: { what: 'has crashed', begin: (engine) => engine.crash() },
  etcd: { what: 'does not answer', begin: (_, line) => line.silence() },
};

/** Fails unless the process ends by itself on SIGTERM, with code 0 and in time. */
async function endsInOrder(server: ServeProcess): Promise<void> {
  const stalls = new StallMeter(() => [server.pid]);
  const kill = setTimeout(() => server.signal('SIGKILL'), patienceMs);
  const beganMs = performance.now();
  const { code, signal, err } = await server.end('SIGTERM');
  const endedMs = performance.now();
  clearTimeout(kill);
  const owedMs = stalls.between(beganMs, endedMs);
  stalls.stop();
  expect({ code, signal }, err).toEqual({ code: 0, signal: null });
  expect(endedMs - beganMs).toBeLessThan(closeLimitMs + owedMs);
}

for (const { kind, isThere, start } of testedEngines) {
  const { what, begin } = outages[kind];
  test
    .skipIf(!isThere)
    .concurrent(`a server whose ${kind} ${what} still ends on SIGTERM`, async ({ onTestFinished }) => {
      const engine = await start();
      onTestFinished(() => engine.dispose());
      const line = await CuttingProxy.before(engine.port);
      onTestFinished(() => line.close());
      const url = engine.urlAt(line.port);
      const cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: url })));
      onTestFinished(() => cluster.stop());
      const leader = await cluster.leader();
      const [follower, last] = (await cluster.followers()) as [ClusterMember, ClusterMember];
      const waiting = cluster.members.map((member) => member.put('a', member.name).catch(() => undefined));
      await begin(engine, line);
      const ends = [endsInOrder(leader.process), endsInOrder(follower.process)];
      await eventually('the last server reports that the log cannot be reached', async () =>
        (await last.ready()).status === 503 ? true : undefined,
      );
      await Promise.all([...ends, endsInOrder(last.process), ...waiting]);
    });
}

test
  .skipIf(!hasPostgres())
  .concurrent(
    'a server whose PostgreSQL stops answering during its start ends on SIGTERM too',
    async ({ onTestFinished }) => {
      const database = await PostgresCluster.create();
      onTestFinished(() => database.dispose());
      const line = await CuttingProxy.before(database.port);
      onTestFinished(() => line.close());
      const looksForSnapshot = line.loseAnswerTo('chunk_rows, digest FROM');
      const engine = `postgres://postgres@127.0.0.1:${line.port}/postgres`;
      const server = new ServeProcess(['serve', '--engine', engine, '--listen-client-urls', 'http://127.0.0.1:0']);
      await looksForSnapshot;
      line.silence();
      await endsInOrder(server);
    },
  );
