import { createHash } from 'node:crypto';
import type { AuthChange, Command } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { afterEach, expect, test } from 'vitest';
import { systemRandom } from '../random/system-random.ts';
import { ReplicaPair, type WiredReplica } from '../replica/testing/replica-pair.ts';
import { maxSimpleTokens, maxUnknownTokens, SimpleTokens } from './simple-tokens.ts';

const ttlMs = 300_000;
const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface TokenServer extends WiredReplica {
  readonly tokens: SimpleTokens;
}

/** Two servers on one log, with a user, and tokens that live by a clock of the test. */
async function setUp() {
  const pair = new ReplicaPair();
  const clock = new VirtualClock();
  const join = async (): Promise<TokenServer> => {
    const made: { tokens?: SimpleTokens } = {};
    const wired = await pair.join({
      onFact: (fact) => {
        if (fact.kind !== 'applied') return;
        fact.entry.commands.forEach((command, i) => made.tokens?.applied(command, fact.applied.responses[i]!));
      },
    });
    const tokens = (made.tokens = new SimpleTokens({ replica: wired.replica, clock, random: systemRandom, ttlMs }));
    closing.push(() => tokens.stop());
    return { ...wired, tokens };
  };
  const [leader, follower] = [await join(), await join()];
  closing.push(() => pair.close());
  await pair.lead(leader, follower);
  const by = () => ({ user: 'root', authRevision: leader.replica.state.auth.revision });
  const change = async (one: AuthChange): Promise<void> => {
    const { enabled } = leader.replica.state.auth;
    const command: Command = { kind: 'auth', change: one, ...(enabled && { by: by() }) };
    const response = await leader.replica.propose(command);
    if (response.kind === 'error') throw new Error(response.code);
  };
  const addUser = (user: string) => change({ kind: 'addUser', user, passwordHash: 'x', noPassword: false });
  await addUser('root');
  await change({ kind: 'grantRole', user: 'root', role: 'root' });
  await addUser('ada');
  await change({ kind: 'enable' });
  const auth = () => leader.replica.state.auth;
  return { pair, clock, leader, follower, change, addUser, auth, issue: issueOn(leader) };
}

function issueOn({ tokens, replica }: TokenServer) {
  return async (user = 'ada'): Promise<string> => (await tokens.issue(user, replica.state.auth.revision))!;
}

test("a token looks like etcd's, and names its user by the auth data of now", async () => {
  const { leader, change, auth, issue } = await setUp();
  const token = await issue();
  expect(token).toMatch(/^[A-Za-z]{16}\.\d+$/);
  expect(leader.tokens.requesterOf(token)).toEqual({ user: 'ada', authRevision: auth().revision });
  await change({ kind: 'addRole', role: 'any' });
  expect(leader.tokens.requesterOf(token)).toEqual({ user: 'ada', authRevision: auth().revision });
  expect(await leader.tokens.requesterOf(`${token.slice(0, 15)}x.1`)).toBeUndefined();
});

test('every server accepts it, also one that is behind', async () => {
  const { follower, issue, auth, pair, leader } = await setUp();
  const ada = { user: 'ada', authRevision: auth().revision };
  const letRead = follower.engine.reading.hold();
  const token = await issue();
  const found = follower.tokens.requesterOf(token);
  expect(follower.tokens.size).toBe(0);
  letRead();
  expect(await found).toEqual(ada);
  expect(follower.tokens.requesterOf(token)).toEqual(ada);
  const issuedThere = await issueOn(follower)();
  expect(leader.tokens.requesterOf(issuedThere)).toEqual(ada);
  expect(await pair.logged()).toContain('auth');
});

test('the log has the digest of a token, never the token', async () => {
  const { leader, issue } = await setUp();
  const commands: unknown[] = [];
  const { tokens } = leader;
  const applied = tokens.applied.bind(tokens);
  tokens.applied = (command, response) => {
    commands.push(command);
    applied(command, response);
  };
  const token = await issue();
  expect(JSON.stringify(commands)).toContain(createHash('sha256').update(token).digest('hex'));
  expect(JSON.stringify(commands)).not.toContain(token);
});

test('none is issued for a password of the past, nor while authentication is disabled', async () => {
  const { leader, change, auth } = await setUp();
  const { revision } = auth();
  await change({ kind: 'changePassword', user: 'ada', passwordHash: 'y' });
  expect(await leader.tokens.issue('ada', revision)).toBeUndefined();
  expect(leader.tokens.size).toBe(0);
  await change({ kind: 'disable' });
  await expect(leader.tokens.issue('ada', auth().revision)).rejects.toMatchObject({ code: 9 });
});

const ends: readonly (readonly [string, readonly AuthChange[]])[] = [
  ['the password changes', [{ kind: 'changePassword', user: 'ada', passwordHash: 'y' }]],
  ['the user is deleted', [{ kind: 'deleteUser', user: 'ada' }]],
  [
    'the user is deleted and another has the name',
    [
      { kind: 'deleteUser', user: 'ada' },
      { kind: 'addUser', user: 'ada', passwordHash: 'x', noPassword: false },
    ],
  ],
  ['authentication is disabled', [{ kind: 'disable' }]],
  ['authentication is disabled and enabled', [{ kind: 'disable' }, { kind: 'enable' }]],
];
test.each(ends)('it ends when %s, and not those of others then', async (_, changes) => {
  const { leader, change, issue, auth } = await setUp();
  const token = await issue();
  const other = await issue('root');
  for (const one of changes) await change(one);
  expect(await leader.tokens.requesterOf(token)).toBeUndefined();
  const staysValid = !changes.some(({ kind }) => kind === 'disable');
  expect(await leader.tokens.requesterOf(other)).toEqual(
    staysValid ? { user: 'root', authRevision: auth().revision } : undefined,
  );
});

test('use keeps it, and without use it ends after the TTL whatever the wall clock does', async () => {
  const { leader, clock, issue } = await setUp();
  const [used, unused] = [await issue(), await issue()];
  for (let i = 0; i < 5; i += 1) {
    await clock.advance(ttlMs - 1);
    clock.stepWall(i % 2 === 0 ? 86_400_000 : -86_400_000);
    expect(leader.tokens.requesterOf(used)).toMatchObject({ user: 'ada' });
  }
  expect(leader.tokens.size).toBe(1);
  expect(await leader.tokens.requesterOf(unused)).toBeUndefined();
  await clock.advance(ttlMs);
  expect(await leader.tokens.requesterOf(used)).toBeUndefined();
  await clock.advance(1000);
  expect(leader.tokens.size).toBe(0);
});

test('a server that starts again knows none of the tokens', async () => {
  const { pair, leader, issue } = await setUp();
  const token = await issue();
  const again = await pair.join();
  pair.link(again, leader);
  const { replica } = again;
  const restarted = new SimpleTokens({ replica, clock: new VirtualClock(), random: systemRandom, ttlMs });
  expect(replica.state.auth.users.has('ada')).toBe(true);
  expect(await restarted.requesterOf(token)).toBeUndefined();
  restarted.stop();
});

test('ten thousand texts of 64 KiB are refused in no time, without a question to the leader', async () => {
  const { follower } = await setUp();
  const garbage = [
    'a'.repeat(65_536),
    '1'.repeat(65_536),
    `${'a'.repeat(16)}.${'1'.repeat(65_519)}`,
    '\0'.repeat(65_536),
  ];
  const before = process.cpuUsage();
  for (let i = 0; i < 10_000; i += 1) expect(follower.tokens.requesterOf(garbage[i % 4]!)).toBeUndefined();
  const { user } = process.cpuUsage(before);
  expect(user / 1000).toBeLessThan(2_000);
});

test('few may wait to learn of an unknown token, and a known one never waits', async () => {
  const { follower, issue, pair, leader } = await setUp();
  const token = await issue();
  await follower.replica.linearize();
  follower.replica.linked(undefined);
  const unknown = Array.from({ length: maxUnknownTokens + 10 }, (_, i) =>
    Promise.resolve(follower.tokens.requesterOf(`aaaaaaaaaaaaaaaa.${i}`)),
  );
  const settled = Promise.allSettled(unknown);
  expect(follower.tokens.requesterOf(token)).toMatchObject({ user: 'ada' });
  await expect(unknown.at(-1)).rejects.toMatchObject({ code: 'overloaded' });
  pair.link(follower, leader);
  const all = await settled;
  expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(10);
  expect(await follower.tokens.requesterOf('aaaaaaaaaaaaaaaa.1')).toBeUndefined();
});

test('the number of tokens is limited; the one that was used least recently goes', async () => {
  const { leader, issue, clock } = await setUp();
  const first = await issue();
  const second = await issue();
  await clock.advance(1_000);
  expect(leader.tokens.requesterOf(first)).toMatchObject({ user: 'ada' });
  for (let i = 0; i < maxSimpleTokens - 1; i += 1) {
    const change = { kind: 'issueToken', user: 'ada', tokenDigest: String(i), authRevision: 5 } as const;
    leader.tokens.applied({ kind: 'auth', change }, { kind: 'ok', revision: 1 });
  }
  expect(leader.tokens.size).toBe(maxSimpleTokens);
  expect(leader.tokens.requesterOf(first)).toMatchObject({ user: 'ada' });
  expect(await leader.tokens.requesterOf(second)).toBeUndefined();
});

test('a hundred thousand logins of one user take no token from another', async () => {
  const { leader, issue } = await setUp();
  const other = await issue('root');
  for (let i = 0; i < maxSimpleTokens; i += 1) {
    const change = { kind: 'issueToken', user: 'ada', tokenDigest: String(i), authRevision: 5 } as const;
    leader.tokens.applied({ kind: 'auth', change }, { kind: 'ok', revision: 1 });
  }
  expect(leader.tokens.size).toBe(maxSimpleTokens);
  expect(await leader.tokens.requesterOf(other)).toMatchObject({ user: 'root' });
});
