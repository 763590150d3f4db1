import { expect, test } from 'vitest';
import { LeaseCollection } from '../lease/lease-collection.ts';
import { KeyEntry } from '../mvcc/key-entry.ts';
import { putRequest } from '../testing/requests.ts';
import { AccessCheck } from './access-check.ts';
import { AuthState } from './auth-state.ts';
import type { Role } from './auth-types.ts';

const count = 20_000;
/** No request may take longer on the event loop. */
const limitMs = 20;
/** One attempt may meet a collection of garbage. */
const attempts = 5;
const keys = Array.from({ length: count }, (_, i) => `k/${String(i).padStart(6, '0')}`);

function roleFor(name: string, allowed: readonly string[]): Role {
  return { name, permissions: allowed.map((key) => ({ type: 'readWrite', key, rangeEnd: '' })) };
}

/**
 * Users with a separate range for each key of a lease: ann by one role, bob by two that take turns. A state that has
 * derived nothing from its roles yet.
 */
function freshState(): AuthState {
  const user = (name: string, ...roles: string[]) => {
    return [name, { name, passwordHash: 'x', noPassword: false, roles, since: 1 }] as const;
  };
  const roles = [
    roleFor('all', keys),
    roleFor(
      'even',
      keys.filter((_, i) => i % 2 === 0),
    ),
    roleFor(
      'odd',
      keys.filter((_, i) => i % 2 === 1),
    ),
  ];
  return new AuthState({
    ...{ enabled: true, revision: 2, enabledAt: 1 },
    users: new Map([user('ann', 'all'), user('bob', 'even', 'odd')]),
    roles: new Map(roles.map((role) => [role.name, role])),
  });
}

const leases = new LeaseCollection();
leases.add({ id: 1n, ttlMs: 1000, label: '', renewIndex: 1, liveEpoch: 0, deadlineMs: undefined });
const entries = keys.map((key) => {
  return new KeyEntry({ key, value: '', createRevision: 1, modRevision: 1, version: 1, lease: 1n });
});
for (const entry of entries) leases.attach(1n, entry);

function shortestMs<Prepared>(prepare: () => Prepared, ask: (prepared: Prepared) => void): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < attempts; i += 1) {
    const prepared = prepare();
    // Time of the processor: what the machine withholds does not count.
    const before = process.cpuUsage();
    ask(prepared);
    const { user, system } = process.cpuUsage(before);
    shortest = Math.min(shortest, (user + system) / 1000);
  }
  return shortest;
}

const accessOf = (auth: AuthState, user: string): AccessCheck =>
  new AccessCheck(auth, leases, { user, authRevision: 2 });

test.each(['ann', 'bob'])(
  'the first request derives the ranges of %s and checks 20,000 keys within the limit',
  (user) => {
    const first = (): AccessCheck => accessOf(freshState(), user);
    expect(shortestMs(first, (access) => expect(access.writeKeysOf(1n)).toBeUndefined())).toBeLessThan(limitMs);
    expect(shortestMs(first, (access) => expect(access.readKeysOf(1n)).toBeUndefined())).toBeLessThan(limitMs);
  },
);

test('the ranges of ten roles are derived together within the limit', () => {
  const roles = Array.from({ length: 10 }, (_, role) => {
    return roleFor(
      `r${role}`,
      keys.filter((_key, i) => i % 10 === role),
    );
  });
  const user = { name: 'eve', passwordHash: 'x', noPassword: false, roles: roles.map(({ name }) => name), since: 1 };
  const fresh = (): AccessCheck => {
    const data = { enabled: true, revision: 2, enabledAt: 1 };
    const users = new Map([['eve', user]]);
    return accessOf(new AuthState({ ...data, users, roles: new Map(roles.map((role) => [role.name, role])) }), 'eve');
  };
  expect(shortestMs(fresh, (access) => expect(access.writeKeysOf(1n)).toBeUndefined())).toBeLessThan(limitMs);
});

test('renewals and puts after the first look at no other key', () => {
  const auth = freshState();
  const checked = ['ann', 'bob'].map((user) => accessOf(auth, user));
  for (const access of checked) access.writeKeysOf(1n);
  const manyTimes = (): void => {
    for (let i = 0; i < 10; i += 1) {
      for (const access of checked) expect(access.put(putRequest(keys[i]!, 'v', { lease: 1n }))).toBeUndefined();
      leases.detach(1n, entries[i]!);
      leases.attach(1n, entries[i]!);
    }
  };
  expect(shortestMs(() => undefined, manyTimes)).toBeLessThan(limitMs / 4);
});
