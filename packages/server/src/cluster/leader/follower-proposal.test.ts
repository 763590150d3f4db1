import type { Command } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { afterEach, expect, test, vi } from 'vitest';
import { CommandRules } from '../../api/command-rules.ts';
import { statusNamed } from '../../api/status-of.ts';
import { authKind, encodeCommand, newestCommandKind } from '../../replica/command-codec.ts';
import { LeadingServer } from '../testing/leading-server.ts';
import { patience, Stranger } from '../testing/stranger.ts';

const maxRequestBytes = 10_000;
const maxTxnOps = 4;
const { Refusal_Reason: Reason } = peerpb;
let server: LeadingServer | undefined;
afterEach(async () => {
  Stranger.cancelAll();
  await server?.close();
});

/** A follower with the secret, linked to a leader with the checks of a real one; its quota is exceeded if `isFull`. */
async function joined({ isFull = false, newestCommand = newestCommandKind } = {}): Promise<{
  leader: LeadingServer;
  follower: Stranger;
}> {
  const rules: CommandRules = new CommandRules({
    state: () => leader.replica.state,
    canAllApply: () => true,
    quota: { admit: () => (isFull ? Promise.reject(statusNamed('NoSpace')) : undefined) },
    maxRequestBytes,
    maxTxnOps,
  });
  const leader = await LeadingServer.start([2n], { check: (command, bytes) => rules.check(command, bytes) });
  server = leader;
  const follower = new Stranger(leader);
  await follower.join(leader, { newestCommand });
  return { leader, follower };
}

async function refusalsOf(follower: Stranger, commands: readonly Command[], first = 1n): Promise<peerpb.Refusal[]> {
  const before = follower.refusals.length;
  const proposals = commands.map((command, at) => ({ sequence: first + BigInt(at), ...encodeCommand(command) }));
  follower.say({ proposals });
  await vi.waitFor(() => expect(follower.refusals.length - before).toBe(commands.length), patience);
  return follower.refusals.slice(before).sort((a, b) => Number(a.sequence - b.sequence));
}

const put = (key: string, value = ''): Command => {
  return { kind: 'put', put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
};
const putOp = (key: string) => ({ kind: 'put', put: (put(key) as Extract<Command, { kind: 'put' }>).put }) as const;
const txn = (...keys: string[]): Command => {
  return { kind: 'txn', txn: { compare: [], success: keys.map(putOp), failure: [] } };
};
const register = (clientUrls: string[], id = 2n, name = 'm2'): Command => ({
  kind: 'registerMember',
  id,
  name,
  clientUrls,
});

test('an invalid proposal of a follower gets the error that a client gets, and is not appended', async () => {
  const { leader, follower } = await joined();
  const { index } = leader.replica.position;
  const urls = (count: number): string[] => Array.from({ length: count }, (_, at) => `http://h:${at + 1}`);
  const wanted: (readonly [Command, string])[] = [
    [put(''), 'etcdserver: key is not provided'],
    [put('k', 'x'.repeat(maxRequestBytes)), 'etcdserver: request is too large'],
    [txn('a', 'b', 'c', 'd', 'e'), 'etcdserver: too many operations in txn request'],
    [txn('a', 'a'), 'etcdserver: duplicate key given in txn request'],
    [{ kind: 'deleteRange', deleteRange: { key: '', rangeEnd: '', prevKv: false } }, 'etcdserver: key is not provided'],
    [{ kind: 'compact', revision: -1 }, 'etcdserver: mvcc: required revision has been compacted'],
    [{ kind: 'leaseGrant', id: 0n, ttlMs: 1_000, label: '' }, 'a lease needs an id'],
    [{ kind: 'leaseGrant', id: 5n, ttlMs: 0, label: '' }, 'a lease needs an id'],
    [{ kind: 'leaseGrant', id: 5n, ttlMs: -1_000, label: '' }, 'a lease needs an id'],
    [{ kind: 'leaseGrant', id: 5n, ttlMs: 1_000, label: 'x'.repeat(maxRequestBytes) }, 'request is too large'],
    [register(['not a url']), 'etcdserver: given member URLs are invalid'],
    [register(['http://127.0.0.1:0']), 'etcdserver: given member URLs are invalid'],
    [register(urls(33)), 'etcdserver: given member URLs are invalid'],
    [register(urls(1), 2n, 'n'.repeat(300)), 'a member needs an id'],
  ];
  const refusals = await refusalsOf(
    follower,
    wanted.map(([command]) => command),
  );
  for (const [at, [, message]] of wanted.entries()) {
    expect(refusals[at]).toMatchObject({ reason: Reason.REFUSED, message: expect.stringContaining(message) });
  }
  expect(leader.replica.position.index).toBe(index);
});

test('a follower may register only itself, and may not propose a read', async () => {
  const { leader, follower } = await joined();
  const { index } = leader.replica.position;
  const range = { key: 'k', rangeEnd: '', limit: 0, revision: 0, sortOrder: 0, sortTarget: 0, serializable: false };
  const filters = { minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 };
  const rangeOp = { kind: 'range', range: { ...range, ...filters, keysOnly: false, countOnly: false } } as const;
  const refusals = await refusalsOf(follower, [
    register(['http://h:1'], 3n, 'm3'),
    register(['http://h:1'], 1n, 'm1'),
    { kind: 'txn', txn: { compare: [], success: [rangeOp], failure: [] } },
  ]);
  for (const { reason } of refusals) expect(reason).toBe(Reason.NOT_ALLOWED);
  const [beyond] = await refusalsOf(follower, [put('k')], 2n ** 60n);
  expect(beyond?.reason).toBe(Reason.NOT_ALLOWED);
  expect(leader.replica.position.index).toBe(index);
  const proposals = [register(['http://h:1']), put('k')].map((one, at) => ({
    sequence: 100n + BigInt(at),
    ...encodeCommand(one),
  }));
  follower.say({ proposals });
  await vi.waitFor(() => expect(leader.replica.state.keyCount).toBe(1), patience);
  expect(leader.replica.state.members.find(({ id }) => id === 2n)?.clientUrls).toEqual(['http://h:1']);
});

test.each([
  ['of a version without users', authKind - 1, [Reason.NOT_ALLOWED, Reason.NOT_ALLOWED, Reason.NOT_ALLOWED]],
  ['that knows of users', authKind, []],
])('once there are users, a follower %s decides for no client', async (_name, newestCommand, reasons) => {
  const { leader, follower } = await joined({ newestCommand });
  const before = { kind: 'alarm', action: 'activate', memberId: 2n, alarm: 'nospace' } as const;
  follower.say({ proposals: [{ sequence: 1n, ...encodeCommand(before) }] });
  await vi.waitFor(() => expect(leader.replica.state.alarms).toHaveLength(1), patience);
  const add = { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false } as const;
  await leader.replica.propose({ kind: 'auth', change: add });
  await leader.replica.propose({ kind: 'auth', change: { kind: 'grantRole', user: 'root', role: 'root' } });
  await leader.replica.propose({ kind: 'auth', change: { kind: 'enable' } });
  const { index } = leader.replica.position;
  const commands: readonly Command[] = [
    { kind: 'compact', revision: 1 },
    { kind: 'removeMember', id: 2n },
    { kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'nospace' },
  ];
  if (reasons.length > 0) {
    expect((await refusalsOf(follower, commands, 2n)).map(({ reason }) => reason)).toEqual(reasons);
    expect(leader.replica.position.index).toBe(index);
    return;
  }
  follower.say({ proposals: [{ sequence: 2n, ...encodeCommand(commands[2]!) }] });
  await vi.waitFor(() => expect(leader.replica.state.alarms).toHaveLength(2), patience);
});

test('the quota of space applies to followers as it does to clients', async () => {
  const { leader, follower } = await joined({ isFull: true });
  const { index } = leader.replica.position;
  const full = 'etcdserver: mvcc: database space exceeded';
  const grant: Command = { kind: 'leaseGrant', id: 5n, ttlMs: 1_000, label: '' };
  const refusals = await refusalsOf(follower, [put('k'), txn('a'), grant]);
  for (const refusal of refusals) expect(refusal).toMatchObject({ reason: Reason.REFUSED, message: full });
  expect(leader.replica.position.index).toBe(index);
});

test('a follower that reports an applied index beyond the log is disconnected', async () => {
  const { leader, follower } = await joined();
  follower.say({ appliedIndex: BigInt(leader.replica.position.index + 1) });
  follower.say({ renewals: [{ ids: [1n] }], appliedIndex: 2n ** 63n });
  expect(await follower.ended()).toEqual({ code: 14, details: 'etcdserver: not leader' });
});
