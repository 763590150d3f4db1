import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { Code, refusalOf } from '../client/refusal.ts';
import { revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const hashBytes = 32;
const sectorBytes = 512;

const status: Case[] = [
  {
    name: 'answers Status: one member that leads and does not lag',
    run: async (t) => {
      const revision = await t.put('a');
      const reply = await t.maintenance.status({});
      expect(reply.header?.revision).toBe(revision);
      expect(reply.leader).toBe(reply.header?.memberId);
      expect(reply.raftTerm).toBe(reply.header?.raftTerm);
      expect(reply).toMatchObject({ isLearner: false, errors: [] });
      expect(reply.version).toMatch(/^3\.\d+\.\d+$/);
      expect(reply.raftIndex).toBeGreaterThan(0n);
      expect(reply.raftAppliedIndex).toBeLessThanOrEqual(reply.raftIndex);
      expect(reply.dbSize).toBeGreaterThan(0n);
      expect(reply.dbSizeInUse).toBeGreaterThan(0n);
      expect(reply.dbSizeInUse).toBeLessThanOrEqual(reply.dbSize);
    },
  },
  {
    name: 'moves Status.raftAppliedIndex with each write, and dbSize with the stored data',
    run: async (t) => {
      const before = await t.maintenance.status({});
      await t.put('a', 'v'.repeat(500_000));
      // etcd replies to a write a moment before it counts it as applied.
      await t.until('the index shows the write', async () => {
        return (await t.maintenance.status({})).raftAppliedIndex > before.raftAppliedIndex;
      });
      await t.until('the size shows the value', async () => {
        const { dbSizeInUse } = await t.maintenance.status({});
        return dbSizeInUse >= before.dbSizeInUse + 400_000n;
      });
    },
  },
  {
    name: 'names the quota and the storage version in Status',
    since: '3.6',
    run: async (t) => {
      const reply = await t.maintenance.status({});
      expect(reply.dbSizeQuota).toBeGreaterThan(0n);
      expect(reply.storageVersion).toMatch(/^3\.\d+\.\d+$/);
      expect(reply.downgradeInfo?.enabled ?? false).toBe(false);
    },
  },
  {
    name: 'refuses a downgrade to what is no version, or none below, and cancels none',
    since: '3.6',
    run: async (t) => {
      const { VALIDATE, ENABLE, CANCEL } = etcdserverpb.DowngradeRequest_DowngradeAction;
      const wrongForm = { code: Code.invalidArgument, details: 'etcdserver: wrong downgrade target version format' };
      const invalid = { code: Code.invalidArgument, details: 'etcdserver: invalid downgrade target version' };
      for (const action of [VALIDATE, ENABLE]) {
        for (const version of ['', '3', 'v3.5', '3.x', 'nonsense']) {
          expect(await refusalOf(t.maintenance.downgrade({ action, version })), version).toEqual(wrongForm);
        }
        for (const version of ['3.6', '3.7', '2.5', '4.0.0', '3.6.1']) {
          expect(await refusalOf(t.maintenance.downgrade({ action, version })), version).toEqual(invalid);
        }
      }
      const unknownAction = Buffer.from([0x08, 0x07]);
      const outcome = await t.client.unaryRaw('/etcdserverpb.Maintenance/Downgrade', unknownAction);
      expect(outcome).toMatchObject({ ok: false, code: Code.unknown, details: 'etcdserver: unknown method' });
      for (const version of ['', 'nonsense']) {
        const reply = await t.maintenance.downgrade({ action: CANCEL, version });
        expect(reply.version).toMatch(/^3\.\d+$/);
        expect(reply.header?.revision).toBe(await t.revision());
      }
    },
  },
  {
    name: 'refuses a downgrade to the version before',
    tenureOnly: 'the log of Tenure has one format; etcd 3.6 goes down to 3.5',
    run: async (t) => {
      const { VALIDATE, ENABLE } = etcdserverpb.DowngradeRequest_DowngradeAction;
      for (const action of [VALIDATE, ENABLE]) {
        const { details } = await refusalOf(t.maintenance.downgrade({ action, version: '3.5' }));
        expect(details).toBe('etcdserver: invalid downgrade target version');
      }
      expect((await t.maintenance.status({})).downgradeInfo).toBe(undefined);
    },
  },
  {
    name: "names etcd's API version, and Tenure's own beside it",
    tenureOnly: 'tenure_version is an extension field',
    run: async (t) => {
      const reply = await t.maintenance.status({});
      expect(reply.version).toBe('3.6.0');
      expect(reply.tenureVersion).toMatch(/^\d+\.\d+\.\d+/);
    },
  },
];

const hashes: Case[] = [
  {
    name: 'answers one HashKV for one state, and another for another',
    run: async (t) => {
      await t.put('a', '1');
      const first = await t.maintenance.hashKV({});
      expect(await t.maintenance.hashKV({})).toMatchObject({ hash: first.hash });
      await t.put('a', '2');
      expect((await t.maintenance.hashKV({})).hash).not.toBe(first.hash);
    },
  },
  {
    name: 'answers the HashKV of a past revision as it was answered then',
    run: async (t) => {
      const revision = await t.put('a', '1');
      const then = await t.maintenance.hashKV({});
      await t.put('a', '2');
      await t.delete('a');
      const now = await t.maintenance.hashKV({ revision });
      expect(now.hash).toBe(then.hash);
      expect(now.compactRevision).toBe(then.compactRevision);
      expect(now.header?.revision).toBe(revision + 2n);
    },
  },
  {
    name: 'names the compacted revision in HashKV',
    run: async (t) => {
      await t.put('a', '1');
      const revision = await t.put('a', '2');
      await t.put('a', '3');
      await t.kv.compact({ revision });
      expect((await t.maintenance.hashKV({})).compactRevision).toBe(revision);
    },
  },
  {
    name: 'names the revision that was hashed',
    since: '3.6',
    run: async (t) => {
      const revision = await t.put('a', '1');
      await t.put('a', '2');
      expect((await t.maintenance.hashKV({ revision })).hashRevision).toBe(revision);
      expect((await t.maintenance.hashKV({})).hashRevision).toBe(revision + 1n);
    },
  },
  {
    name: 'refuses the HashKV of a future or a compacted revision',
    run: async (t) => {
      await t.put('a', '1');
      const revision = await t.put('a', '2');
      expect(await refusalOf(t.maintenance.hashKV({ revision: revision + 1n }))).toEqual(refused.futureRevision);
      await t.kv.compact({ revision });
      expect(await refusalOf(t.maintenance.hashKV({ revision: revision - 1n }))).toEqual(refused.compacted);
    },
  },
  {
    name: 'answers the HashKV of the compacted revision itself',
    since: '3.6',
    run: async (t) => {
      const revision = await t.put('a', '1');
      const then = await t.maintenance.hashKV({ revision });
      await t.put('a', '2');
      await t.kv.compact({ revision, physical: true });
      const now = await t.maintenance.hashKV({ revision });
      // The hash and the compact revision in the reply are those from before the compaction.
      expect(now).toMatchObject({ hash: then.hash, compactRevision: then.compactRevision, hashRevision: revision });
      expect((await t.maintenance.hashKV({})).compactRevision).toBe(revision);
      await t.kv.compact({ revision: revision + 1n, physical: true });
      expect(await t.maintenance.hashKV({ revision })).toMatchObject({ hash: then.hash, hashRevision: revision });
      expect((await t.maintenance.hashKV({ revision: revision + 1n })).compactRevision).toBe(revision);
    },
  },
  {
    name: 'hashes nothing at a negative revision, and returns the requested revision',
    since: '3.6',
    run: async (t) => {
      const first = await t.maintenance.hashKV({ revision: -1n });
      expect(first.hashRevision).toBe(-1n);
      const { compactRevision } = await t.maintenance.hashKV({});
      await t.put('a', '1');
      for (const revision of [-1n, -5n, -(2n ** 62n)]) {
        const reply = await t.maintenance.hashKV({ revision });
        expect(reply).toMatchObject({ hash: first.hash, hashRevision: revision, compactRevision });
      }
    },
  },
  {
    name: 'answers Hash, another after a write',
    run: async (t) => {
      const first = await t.maintenance.hash({});
      await t.put('a', '1');
      const second = await t.maintenance.hash({});
      expect(second.hash).not.toBe(first.hash);
      expect(second.header?.revision).toBe(revisionOf(first) + 1n);
    },
  },
];

const snapshots: Case[] = [
  {
    name: 'streams a snapshot that ends with the SHA-256 of all before, 32 bytes beyond full sectors',
    run: async (t) => {
      await t.put('a', 'v'.repeat(200_000));
      const messages = await t.client.serverStream(etcdserverpb.Maintenance.method.snapshot, {});
      const whole = Buffer.concat(messages.map(({ blob }) => blob));
      expect(whole.length % sectorBytes).toBe(hashBytes);
      expect(whole.length).toBeGreaterThan(200_000);
      const content = whole.subarray(0, -hashBytes);
      const hash = createHash('sha256').update(content).digest();
      expect(whole.subarray(-hashBytes).equals(hash)).toBe(true);
    },
  },
  {
    name: 'names the storage version in each message of the snapshot',
    since: '3.6',
    run: async (t) => {
      const { storageVersion } = await t.maintenance.status({});
      const messages = await t.client.serverStream(etcdserverpb.Maintenance.method.snapshot, {});
      expect(new Set(messages.map(({ version }) => version))).toEqual(new Set([storageVersion]));
    },
  },
  {
    name: 'counts the remaining bytes of the snapshot down to none',
    run: async (t) => {
      await t.put('a', 'v'.repeat(200_000));
      const messages = await t.client.serverStream(etcdserverpb.Maintenance.method.snapshot, {});
      const content = messages.reduce((sum, { blob }) => sum + blob.length, 0) - hashBytes;
      let sent = 0;
      for (const { blob, remainingBytes } of messages) {
        sent = Math.min(content, sent + blob.length);
        expect(remainingBytes).toBe(BigInt(content - sent));
      }
    },
  },
];

const others: Case[] = [
  {
    name: 'defragments without a change to the stored data',
    run: async (t) => {
      await t.put('a', '1');
      const revision = await t.put('a', '2');
      const before = await t.maintenance.hashKV({});
      const reply = await t.maintenance.defragment({});
      expect(reply.header).toBeUndefined();
      expect((await t.maintenance.hashKV({})).hash).toBe(before.hash);
      expect(await t.revision()).toBe(revision);
      expect(t.pairs((await t.kv.range({ key: t.key('a'), revision: revision - 1n })).kvs)).toEqual(['a=1']);
    },
  },
  {
    name: 'lists no alarm when there is none, and deactivates none',
    run: async (t) => {
      const { AlarmRequest_AlarmAction: Action, AlarmType } = etcdserverpb;
      expect((await t.maintenance.alarm({ action: Action.GET })).alarms).toEqual([]);
      const deactivated = await t.maintenance.alarm({ action: Action.DEACTIVATE, alarm: AlarmType.NOSPACE });
      expect(deactivated.alarms).toEqual([]);
    },
  },
];

export const maintenance: CaseGroup = { name: 'Maintenance', cases: [...status, ...hashes, ...snapshots, ...others] };
