import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, describe, expect, test } from 'vitest';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { EngineError } from '../../packages/server/src/engines/engine-error.ts';
import type { LogEngine } from '../../packages/server/src/engines/log-engine.ts';
import { openSharedEngine } from '../../packages/server/src/engines/shared-engine.ts';
import { checkAfterwards } from './invariants.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { LastingWatch } from './lasting-watch.ts';

const snapshotCount = 20;
const all = Buffer.alloc(1);
/** The time that a slow machine may take for some hundred writes and a dozen snapshots, and for reading a snapshot. */
const patienceMs = 60_000;

interface Write {
  readonly key: string;
  readonly value: string;
  readonly revision: number;
}

/** Two servers that write snapshots often. The follower is suspended. */
class StoppedServer {
  readonly writes: Write[] = [];
  readonly cluster: Cluster;
  readonly leader: ClusterMember;
  readonly out: ClusterMember;
  readonly #log: LogEngine;

  private constructor(cluster: Cluster, leader: ClusterMember, out: ClusterMember, log: LogEngine) {
    this.cluster = cluster;
    this.leader = leader;
    this.out = out;
    this.#log = log;
  }

  static async start(url: string): Promise<StoppedServer> {
    const flags = ['--snapshot-count', `${snapshotCount}`];
    const cluster = await Cluster.start(['s1', 's2'].map((name) => ({ name, engine: url, flags })));
    const leader = await cluster.leader();
    const out = cluster.members.find((member) => member !== leader) as ClusterMember;
    const log = await openSharedEngine({ url, schema: 'tenure', dedicated: false, onNotice: () => undefined });
    return new StoppedServer(cluster, leader, out, log);
  }

  async write(count: number): Promise<void> {
    for (let put = 0; put < count; put += 1) {
      const [key, value] = [`key/${put % 10}`, `value-${this.writes.length}`];
      this.writes.push({ key, value, revision: await this.leader.put(key, value) });
    }
  }

  /** Suspends the follower, and resolves when the log no longer has the entry that it must read next. */
  async stopUntilTrimmed(meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    const reached = Number((await this.out.maintenance.status({})).raftAppliedIndex);
    this.out.process.signal('SIGSTOP');
    await this.write(snapshotCount);
    await meanwhile();
    // The follower may still read entries that were requested before its suspension. It certainly lacks the later ones.
    const beyond = reached + snapshotCount;
    await eventually(
      'the log is trimmed',
      async () => {
        await this.write(snapshotCount);
        return (await this.#isTrimmed(beyond)) || undefined;
      },
      patienceMs,
    );
  }

  /** Resumes the follower, and resolves when it has reached the end of the log. */
  async goOn(): Promise<void> {
    const loads = this.#loads();
    this.out.process.signal('SIGCONT');
    const hasLoaded = (): Promise<true | undefined> => Promise.resolve(this.#loads() > loads || undefined);
    await eventually('it continues from a snapshot', hasLoaded, patienceMs);
    const { key, value } = this.writes.at(-1) as Write;
    await eventually('it can be read from', async () => ((await this.out.get(key)) === value ? true : undefined));
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
    await this.#log.close();
  }

  #loads(): number {
    return this.out.process.err.split('continues from a snapshot').length;
  }

  /** A position with a wrong hash is refused: either as trimmed, or as of another log. */
  async #isTrimmed(index: number): Promise<boolean> {
    const reading = this.#log.follow({ index, hash: '0'.repeat(32) }, new AbortController().signal);
    const refusal: unknown = await reading[Symbol.asyncIterator]()
      .next()
      .catch((error: unknown) => error);
    return refusal instanceof EngineError && refusal.code === 'trimmed';
  }
}

const cleanups: (() => Promise<unknown>)[] = [];
const limits = { timeout: 4 * patienceMs };

/** On etcd a suspended server continues to read etcd's own history, until that is compacted. */
describe
  .skipIf(!hasPostgres())
  .concurrent('a server on PostgreSQL that was suspended until its next entry was trimmed', limits, () => {
    const start = async (): Promise<StoppedServer> => {
      const database = await PostgresDatabase.create();
      const servers = await StoppedServer.start(database.url());
      cleanups.push(async () => {
        await servers.stop();
        await database.dispose();
      });
      return servers;
    };

    afterAll(async () => {
      for (const cleanup of cleanups.splice(0)) await cleanup();
    });

    test('continues from a snapshot without a restart, and its watches miss nothing', async ({ onTestFinished }) => {
      const servers = await start();
      const { out, leader, cluster } = servers;
      const watch = new LastingWatch(() => [out], 0);
      onTestFinished(() => watch.stop());
      await servers.write(5);
      await watch.seen(({ value }) => value === 'value-4');
      // Their outcomes are before the suspension, in the skipped part of the log, behind it, or nowhere.
      const asked = Array.from({ length: 30 }, (_, at) => {
        const [key, value] = [`asked/${at}`, `asked-${at}`];
        return out.put(key, value).then(
          (revision) => ({ key, value, revision }),
          (error: unknown) => String(error),
        );
      });
      await servers.stopUntilTrimmed();
      await servers.goOn();
      for (const outcome of await Promise.all(asked)) {
        if (typeof outcome === 'string') expect(outcome).toMatch(/request timed out|leader|deadline/i);
        else servers.writes.push(outcome);
      }
      await checkAfterwards(cluster, [watch], servers.writes);
      watch.stop();
      await eventually('it leads', async () => {
        const now = await cluster.leader();
        if (now === out) return true;
        await now.maintenance.moveLeader({ targetID: (await out.maintenance.status({})).header?.memberId ?? 0n });
        return undefined;
      });
      const revision = await out.put('led by', 'the server that stood still');
      expect(await leader.get('led by')).toBe('the server that stood still');
      expect(revision).toBe(await cluster.checkSameState());
      expect(out.isAlive).toBe(true);
    });

    test('ends a watch whose events were compacted meanwhile, and reports where to resume', async () => {
      const servers = await start();
      const { out, leader, cluster } = servers;
      const stream = new WatchStream(out.client);
      const { watchId } = await stream.create({ key: all, rangeEnd: all });
      await servers.write(1);
      await stream.events(watchId, 1);
      let compacted = 0;
      await servers.stopUntilTrimmed(async () => {
        compacted = servers.writes.at(-1)?.revision ?? 0;
        await leader.kv.compact({ revision: BigInt(compacted) });
      });
      await servers.goOn();
      const end = await stream.canceled(watchId);
      expect(end.compactRevision).toBe(BigInt(compacted));
      const again = await stream.create({ key: all, rangeEnd: all, startRevision: BigInt(compacted) });
      const left = servers.writes.filter(({ revision }) => revision >= compacted);
      const events = await stream.events(again.watchId, left.length);
      expect(events.map(({ kv }) => Number(kv?.modRevision))).toEqual(left.map(({ revision }) => revision));
      stream.close();
      await cluster.checkSameState();
    });
  });
