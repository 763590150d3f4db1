import { expect } from 'vitest';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';

/** Leases that are granted in every moved cluster, with ids as clients choose them. */
export const keptLease = 0x77n;
export const abandonedLease = 0x88n;

/** What must be the same before and after a move. */
export interface MovedContent {
  readonly revision: number;
  readonly hash: number;
  readonly compactRevision: bigint;
  /** The events of the revisions that were not compacted, from a watch, without those of the abandoned lease. */
  readonly events: readonly string[];
  readonly leases: readonly string[];
}

/** Keys, a history, a compaction, a lease with two keys; returns the last revision. */
export async function fill(member: ClusterMember): Promise<number> {
  const { kv, lease } = member;
  const key = (name: string): Buffer => Buffer.from(name);
  for (let round = 0; round < 5; round += 1) await member.put('counter', `${round}`);
  await lease.leaseGrant({ ID: keptLease, TTLMs: 30_000n, label: 'kept' });
  await kv.put({ key: key('held/1'), value: key('x'.repeat(300_000)), lease: keptLease });
  await kv.put({ key: key('held/2'), value: key('two'), lease: keptLease });
  await kv.deleteRange({ key: key('counter') });
  await kv.txn({
    success: [1, 2].map((at) => ({
      request: { case: 'requestPut', value: { key: key(`both/${at}`), value: key(`${at}`) } },
    })),
  });
  await kv.compact({ revision: 4n });
  return member.put('last', 'of all');
}

export async function contentOf(member: ClusterMember, revision: number, eventCount: number): Promise<MovedContent> {
  // Linearizable: from here on the server has applied everything.
  await member.get('last');
  const { hash, compactRevision } = await member.maintenance.hashKV({ revision: BigInt(revision) });
  const watch = new WatchStream(member.client);
  const { watchId } = await watch.create({ key: Buffer.from('b'), rangeEnd: Buffer.of(0), startRevision: 5n });
  const events = (await watch.events(watchId, eventCount)).map(({ type, kv }) => {
    const { key, value, createRevision, modRevision, version, lease } = kv ?? {};
    const numbers = [createRevision, modRevision, version, lease].join(' ');
    return `${type} ${Buffer.from(key ?? []).toString()} ${numbers} ${value?.length} bytes`;
  });
  watch.close();
  const { ID, grantedTTLMs, label, keys } = await member.lease.leaseTimeToLive({ ID: keptLease, keys: true });
  const names = keys.map((key) => Buffer.from(key).toString()).join(' ');
  return { revision, hash, compactRevision, events, leases: [`${ID} ${grantedTTLMs} ${label} ${names}`] };
}

/** The names of the current members, none of them of a former cluster. */
export async function checkMembers(member: ClusterMember, names: readonly string[]): Promise<bigint> {
  const { header, members } = await member.cluster.memberList({});
  expect(members.map(({ name }) => name).sort()).toEqual(names);
  return header?.clusterId ?? 0n;
}
