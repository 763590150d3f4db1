import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import type { Command } from '@tenure/core';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { EngineError } from '../../packages/server/src/engines/engine-error.ts';
import type { LogEngine } from '../../packages/server/src/engines/log-engine.ts';
import { openSharedEngine } from '../../packages/server/src/engines/shared-engine.ts';
import { encodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { Cluster, eventually } from './cluster.ts';
import { ClusterMember } from './cluster-member.ts';

/** No version has had so many kinds. */
const kindOfLater = 4_000;

/** An entry of a later version: a known command, followed by an unknown one. */
function entryWithNewerCommand(epoch: number): Uint8Array {
  const put = { key: 'newer', value: 'version', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  const known: Command = { kind: 'put', put };
  return encodeEntry({ epoch, timeMs: 0 }, [encodeCommand(known), { kind: kindOfLater, payload: Buffer.from('x') }]);
}

const names = inject('effort') === 'soak' ? ['s1', 's2', 's3'] : ['s1', 's2'];

/** A layout of entries that this version does not know. */
function entryOfNewerFormat(epoch: number): Uint8Array {
  const bytes = Buffer.from(entryWithNewerCommand(epoch));
  bytes[0] = (bytes[0] as number) + 1;
  return bytes;
}

describe.skipIf(!hasPostgres())('an entry of a later version in the log', { timeout: 180_000 }, () => {
  let database: PostgresDatabase;
  let cluster: Cluster;
  let log: LogEngine;

  beforeEach(async () => {
    database = await PostgresDatabase.create();
    cluster = await Cluster.start(names.map((name) => ({ name, engine: database.url() })));
    log = await openSharedEngine({
      url: database.url(),
      schema: 'tenure',
      dedicated: false,
      onNotice: () => undefined,
    });
  });

  afterEach(async () => {
    await cluster?.stop();
    await log?.close();
    await database?.dispose();
  });

  /** Appends as a leader of a later version would; sometimes the leader of this version appends first. */
  function append(entry: Uint8Array): Promise<number> {
    return eventually('the entry is in the log', async () => {
      try {
        return (await log.append([entry], await log.tail())).index;
      } catch (error) {
        if (error instanceof EngineError && error.code === 'conflict') return undefined;
        throw error;
      }
    });
  }

  test.each([
    {
      what: 'a command of a newer kind',
      entry: entryWithNewerCommand,
      says: /command of kind 4000.*upgrade this server/,
    },
    { what: 'a newer format', entry: entryOfNewerFormat, says: /an entry of format 2.*upgrade Tenure/ },
  ])('with $what stops every server before it applies any of it', async ({ entry, says }) => {
    const leader = await cluster.leader();
    const { members } = cluster;
    const { epoch } = await leader.leadership();
    const revision = await leader.put('before', 'it');
    const streams = await Promise.all(
      members.map(async ({ client }) => {
        const stream = new WatchStream(client);
        onTestFinished(() => stream.close());
        const created = await stream.create({ key: Buffer.alloc(1), rangeEnd: Buffer.alloc(1), startRevision: 1n });
        await stream.events(created.watchId, 1);
        return { stream, watchId: created.watchId };
      }),
    );
    const index = await append(entry(Number(epoch)));
    for (const { process } of members) {
      const end = await process.ended;
      expect(end.code).toBe(1);
      expect(end.err).toMatch(says);
    }
    // No client has seen anything of it, and no server has appended behind it.
    for (const { stream, watchId } of streams) {
      await stream.ended;
      expect(stream.arrived(watchId).flatMap(({ events }) => events)).toEqual([]);
    }
    expect((await log.tail()).index).toBe(index);
    // A new server of this version reports the same, and leaves the log unchanged.
    const starts = ['s1', 'another'].map((name) => ClusterMember.start({ name, engine: database.url() }));
    await Promise.all(starts.map((start) => expect(start).rejects.toThrow(says)));
    expect((await log.tail()).index).toBe(index);
    expect(revision).toBe(2);
  });
});
