import { afterEach, expect, test } from 'vitest';
import { PostgresCluster } from '../../packages/server/src/engines/postgres/testing/postgres-cluster.ts';
import { hasPostgres } from '../../packages/server/src/engines/postgres/testing/postgres-programs.ts';
import { TcpProxy } from '../../packages/server/src/engines/postgres/testing/tcp-proxy.ts';
import { ServeProcess } from '../serve-process.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { testedEngines, type TestedEngine } from './tested-engine.ts';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A supervisor that waits for 10 s, as many do, never has to kill. */
const closeLimitMs = 8_000;

interface Outage {
  readonly what: string;
  readonly begin: (engine: TestedEngine, line: TcpProxy) => Promise<void> | void;
}

/** What may become of an engine: each once. A silent one is told by nobody. */
const outages: Readonly<Record<TestedEngine['kind'], Outage>> = {
  postgres: { what: 'has crashed', begin: (engine) => engine.crash() },
  etcd: { what: 'does not answer', begin: (_, line) => line.silence() },
};

/** Fails unless the process ends by itself on SIGTERM, in order and in time. */
async function endsInOrder(server: ServeProcess): Promise<void> {
  const kill = setTimeout(() => server.signal('SIGKILL'), closeLimitMs);
  const { code, signal, err } = await server.end('SIGTERM');
  clearTimeout(kill);
  expect({ code, signal }, err).toEqual({ code: 0, signal: null });
}

for (const { kind, isThere, start } of testedEngines) {
  const { what, begin } = outages[kind];
  test.skipIf(!isThere)(`a server whose ${kind} ${what} ends on SIGTERM all the same`, async () => {
    const engine = await start();
    cleanups.push(() => engine.dispose());
    const line = await TcpProxy.before(engine.port);
    cleanups.push(() => line.close());
    const url = engine.urlAt(line.port);
    const cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: url })));
    cleanups.push(() => cluster.stop());
    const leader = await cluster.leader();
    const [follower, last] = (await cluster.followers()) as [ClusterMember, ClusterMember];
    const waiting = cluster.members.map((member) => member.put('a', member.name).catch(() => undefined));
    await begin(engine, line);
    const ends = [endsInOrder(leader.process), endsInOrder(follower.process)];
    await eventually('the last server says that the log is out of reach', async () =>
      (await last.ready()).status === 503 ? true : undefined,
    );
    await Promise.all([...ends, endsInOrder(last.process), ...waiting]);
  });
}

test.skipIf(!hasPostgres())('a server whose PostgreSQL falls silent while it starts ends on SIGTERM too', async () => {
  const database = await PostgresCluster.create();
  cleanups.push(() => database.dispose());
  const line = await TcpProxy.before(database.port);
  cleanups.push(() => line.close());
  const looksForSnapshot = line.loseAnswerTo('chunk_rows, digest FROM');
  const engine = `postgres://postgres@127.0.0.1:${line.port}/postgres`;
  const server = new ServeProcess(['serve', '--engine', engine, '--listen-client-urls', 'http://127.0.0.1:0']);
  await looksForSnapshot;
  line.silence();
  await endsInOrder(server);
});
