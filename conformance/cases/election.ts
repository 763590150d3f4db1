import { expect } from 'vitest';
import type { v3electionpb } from '@tenure/protocol';
import { Code, refusalOf } from '../client/refusal.ts';
import { bytes, textOf } from './bytes.ts';
import { type CaseContext, revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const unknownCode = (details: string): { code: number; details: string } => ({ code: Code.unknown, details });
const leaseNotFound = unknownCode('etcdserver: requested lease not found');
const notLeader = unknownCode('election: not leader');
const noLeader = unknownCode('election: no leader');
const missingLeader = unknownCode('"leader" field must be provided');

const unknownLease = 0x7e57n;

interface Candidate {
  readonly lease: bigint;
  readonly value: string;
  readonly deadlineMs?: number;
}

async function campaign(
  t: CaseContext,
  name: string,
  { lease, value, deadlineMs }: Candidate,
): Promise<v3electionpb.CampaignResponse & { leader: v3electionpb.LeaderKey }> {
  const options = deadlineMs === undefined ? {} : { deadlineMs };
  const reply = await t.election.campaign({ name: t.key(name), lease, value: bytes(value) }, options);
  if (reply.leader === undefined) throw new Error('a campaign was won without a leader key');
  return { ...reply, leader: reply.leader };
}

async function untilQueued(t: CaseContext, name: string, keys: number): Promise<void> {
  await t.until(`${keys} keys of ${name}`, async () => (await t.kv.range(t.all(`${name}/`))).count === BigInt(keys));
}

/** 'value @+2' of the leader in a reply, the revisions of its change as the distance from `base`. */
function leaderIn(reply: v3electionpb.LeaderResponse, base: bigint): string {
  if (reply.kv === undefined) throw new Error('a reply has no leader');
  return `${textOf(reply.kv.value)} @+${reply.kv.modRevision - base}`;
}

const campaigns: Case[] = [
  {
    name: 'is won at once where there is no other candidate',
    run: async (t) => {
      const lease = await t.grant(600n, 0xabcdn);
      const before = await t.revision();
      const reply = await campaign(t, 'e', { lease, value: 'one' });
      expect(revisionOf(reply)).toBe(before + 1n);
      expect(reply.leader).toMatchObject({ rev: before + 1n, lease });
      expect(textOf(reply.leader.name)).toBe(textOf(t.key('e')));
      expect(t.nameOf(reply.leader.key)).toBe('e/abcd');
      expect(await t.get('e/abcd')).toMatchObject({ value: Buffer.from('one'), createRevision: before + 1n, lease });
    },
  },
  {
    name: 'by the leader again changes its value only if that is another, with the header of the first look',
    run: async (t) => {
      const lease = await t.grant();
      const first = await campaign(t, 'e', { lease, value: 'one' });
      const other = await t.put('other');
      const same = await campaign(t, 'e', { lease, value: 'one' });
      expect(same.leader).toEqual(first.leader);
      expect(revisionOf(same)).toBe(other);
      expect(await t.revision()).toBe(other);
      const changed = await campaign(t, 'e', { lease, value: 'two' });
      expect(changed.leader).toEqual(first.leader);
      expect(revisionOf(changed)).toBe(other);
      const { kvs } = await t.kv.range(t.all('e/'));
      expect(kvs).toMatchObject([{ value: Buffer.from('two'), modRevision: other + 1n, version: 2n }]);
    },
  },
  {
    name: 'waits for older candidates, and answers with the revision at which it began',
    run: async (t) => {
      const first = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const second = campaign(t, 'e', { lease: await t.grant(), value: 'two' });
      await untilQueued(t, 'e', 2);
      await t.election.resign({ leader: first.leader });
      const { leader, header } = await second;
      expect(leader.rev).toBe(first.leader.rev + 1n);
      expect(header?.revision).toBe(first.leader.rev + 1n);
    },
  },
  {
    name: 'is won by the next when the lease of the leader ends',
    run: async (t) => {
      const lease = await t.grant();
      await campaign(t, 'e', { lease, value: 'one' });
      const second = campaign(t, 'e', { lease: await t.grant(), value: 'two' });
      await untilQueued(t, 'e', 2);
      await t.lease.leaseRevoke({ ID: lease });
      await second;
    },
  },
  {
    name: 'is refused to a lease that does not exist',
    run: async (t) => {
      expect(await refusalOf(campaign(t, 'e', { lease: unknownLease, value: '' }))).toEqual(leaseNotFound);
      expect((await t.kv.range(t.all())).count).toBe(0n);
    },
  },
  {
    name: 'is lost by a candidate whose lease ends while it waits',
    tenureOnly: 'etcd tells such a candidate that it leads, though its key is gone',
    run: async (t) => {
      await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const lease = await t.grant();
      const second = refusalOf(campaign(t, 'e', { lease, value: 'two' }));
      await untilQueued(t, 'e', 2);
      await t.lease.leaseRevoke({ ID: lease });
      expect(await second).toEqual(notLeader);
    },
  },
  {
    name: 'ends with its client, and serves the next',
    run: async (t) => {
      const first = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const gone = campaign(t, 'e', { lease: await t.grant(), value: 'two', deadlineMs: 500 });
      await expect(gone).rejects.toThrow(/Deadline exceeded|cancel/i);
      await untilQueued(t, 'e', 1);
      const next = campaign(t, 'e', { lease: await t.grant(), value: 'three' });
      await untilQueued(t, 'e', 2);
      await t.election.resign({ leader: first.leader });
      await next;
    },
  },
  {
    name: 'grants a lease of 60 seconds to a request without one',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: 0n, value: 'one' });
      t.cleanUp(() => t.lease.leaseRevoke({ ID: leader.lease }).then(() => undefined));
      expect(t.nameOf(leader.key)).toBe(`e/${leader.lease.toString(16)}`);
      const { grantedTTL } = await t.lease.leaseTimeToLive({ ID: leader.lease });
      expect(grantedTTL).toBe(60n);
    },
  },
  {
    name: 'and a lock of the same name wait for each other',
    run: async (t) => {
      const { key } = await t.lock.lock({ name: t.key('e'), lease: await t.grant() });
      const candidate = campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      await untilQueued(t, 'e', 2);
      await t.lock.unlock({ key });
      await candidate;
    },
  },
];

const leaders: Case[] = [
  {
    name: 'Leader names the oldest candidate, at the revision of the store',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(600n, 0xffn), value: 'one' });
      await t.put('e/1', 'younger');
      const base = await t.put('other');
      const reply = await t.election.leader({ name: t.key('e') });
      expect(revisionOf(reply)).toBe(base);
      expect(reply.kv).toMatchObject({ key: leader.key, value: Buffer.from('one'), createRevision: leader.rev });
    },
  },
  {
    name: 'Leader is refused where there is no candidate',
    run: async (t) => {
      expect(await refusalOf(t.election.leader({ name: t.key('e') }))).toEqual(noLeader);
    },
  },
  {
    name: 'Proclaim changes the value of the leader',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const reply = await t.election.proclaim({ leader, value: bytes('two') });
      expect(revisionOf(reply)).toBe(leader.rev + 1n);
      const { kv } = await t.election.leader({ name: t.key('e') });
      expect(kv).toMatchObject({ value: Buffer.from('two'), createRevision: leader.rev, lease: leader.lease });
    },
  },
  {
    name: 'Proclaim changes the value of a candidate that waits',
    run: async (t) => {
      const first = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const lease = await t.grant();
      const second = campaign(t, 'e', { lease, value: 'two' });
      await untilQueued(t, 'e', 2);
      const key = t.key(`e/${lease.toString(16)}`);
      const waiting = { ...first.leader, key, rev: first.leader.rev + 1n, lease };
      await t.election.proclaim({ leader: waiting, value: bytes('three') });
      await t.election.resign({ leader: first.leader });
      await second;
      expect((await t.election.leader({ name: t.key('e') })).kv?.value).toEqual(Buffer.from('three'));
    },
  },
  {
    name: 'Proclaim is refused for a key of another revision, or none, or without a leader',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const value = bytes('two');
      const other = { ...leader, rev: leader.rev - 1n };
      expect(await refusalOf(t.election.proclaim({ leader: other, value }))).toEqual(notLeader);
      const none = { ...leader, key: t.key('e/none') };
      expect(await refusalOf(t.election.proclaim({ leader: none, value }))).toEqual(notLeader);
      expect(await refusalOf(t.election.proclaim({ value }))).toEqual(missingLeader);
      expect(await t.get(t.nameOf(leader.key))).toMatchObject({ version: 1n, value: Buffer.from('one') });
    },
  },
  {
    name: 'Proclaim is refused with a lease that does not exist',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const ofNone = { ...leader, lease: unknownLease };
      expect(await refusalOf(t.election.proclaim({ leader: ofNone, value: bytes('two') }))).toEqual(leaseNotFound);
    },
  },
  {
    name: 'Proclaim without a lease moves the key to a new lease of 60 seconds',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      await t.election.proclaim({ leader: { ...leader, lease: 0n }, value: bytes('two') });
      const lease = (await t.get(t.nameOf(leader.key)))?.lease ?? 0n;
      t.cleanUp(() => t.lease.leaseRevoke({ ID: lease }).then(() => undefined));
      expect(lease).not.toBe(leader.lease);
      expect((await t.lease.leaseTimeToLive({ ID: lease })).grantedTTL).toBe(60n);
    },
  },
  {
    name: 'Resign deletes the key, once, and not one of another revision',
    run: async (t) => {
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const before = await t.revision();
      const other = { ...leader, rev: leader.rev + 1n };
      expect(revisionOf(await t.election.resign({ leader: other }))).toBe(before);
      expect(revisionOf(await t.election.resign({ leader }))).toBe(before + 1n);
      expect(revisionOf(await t.election.resign({ leader }))).toBe(before + 1n);
      expect((await t.kv.range(t.all())).count).toBe(0n);
    },
  },
  {
    name: 'Resign is refused without a leader, or with an empty key',
    run: async (t) => {
      expect(await refusalOf(t.election.resign({}))).toEqual(missingLeader);
      const empty = refusalOf(t.election.resign({ leader: { name: t.key('e'), rev: 1n, lease: 1n } }));
      expect(await empty).toEqual(unknownCode('etcdserver: key is not provided'));
    },
  },
];

const observers: Case[] = [
  {
    name: 'Observe sends the leader there is, each of its values, and each next leader',
    run: async (t) => {
      const base = await t.revision();
      const first = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      await t.election.proclaim({ leader: first.leader, value: bytes('two') });
      const other = await t.put('other');
      const observed = t.observe('e');
      const now = await observed.next();
      expect(leaderIn(now, base)).toBe('two @+2');
      expect(revisionOf(now)).toBe(other);
      await t.election.proclaim({ leader: first.leader, value: bytes('three') });
      const changed = await observed.next();
      expect(leaderIn(changed, base)).toBe('three @+4');
      expect(revisionOf(changed)).toBe(base + 4n);
      const second = campaign(t, 'e', { lease: await t.grant(), value: 'four' });
      await untilQueued(t, 'e', 2);
      await t.election.resign({ leader: first.leader });
      const next = await observed.next();
      expect(leaderIn(next, base)).toBe('four @+5');
      expect(revisionOf(next)).toBe(base + 6n);
      expect((await second).leader.key).toEqual(next.kv?.key);
      expect(observed.arrived()).toEqual([]);
    },
  },
  {
    name: 'Observe waits for the first leader, which it sends with the revision of its key',
    run: async (t) => {
      const observed = t.observe('e');
      const base = await t.put('other');
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const first = await observed.next();
      expect(leaderIn(first, base)).toBe('one @+1');
      expect(revisionOf(first)).toBe(base + 1n);
      await t.election.resign({ leader });
      await campaign(t, 'e', { lease: await t.grant(), value: 'two' });
      expect(leaderIn(await observed.next(), base)).toBe('two @+3');
    },
  },
  {
    name: 'Observe sends the next leader after the lease of the leader has ended',
    run: async (t) => {
      const base = await t.revision();
      const lease = await t.grant();
      await campaign(t, 'e', { lease, value: 'one' });
      const second = campaign(t, 'e', { lease: await t.grant(), value: 'two' });
      await untilQueued(t, 'e', 2);
      const observed = t.observe('e');
      expect(leaderIn(await observed.next(), base)).toBe('one @+1');
      await t.lease.leaseRevoke({ ID: lease });
      expect(leaderIn(await observed.next(), base)).toBe('two @+2');
      await second;
    },
  },
  {
    name: 'Observe goes on after a compaction of the history',
    run: async (t) => {
      const base = await t.revision();
      const { leader } = await campaign(t, 'e', { lease: await t.grant(), value: 'one' });
      const observed = t.observe('e');
      expect(leaderIn(await observed.next(), base)).toBe('one @+1');
      await t.kv.compact({ revision: await t.put('other') });
      await t.election.proclaim({ leader, value: bytes('two') });
      expect(leaderIn(await observed.next(), base)).toBe('two @+3');
    },
  },
];

export const electionService: CaseGroup = { name: 'Election', cases: [...campaigns, ...leaders, ...observers] };
