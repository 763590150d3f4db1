import { expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext } from '../testing/requests.ts';
import type { AuthChange, User } from './auth-types.ts';

function machineWith(...changes: readonly AuthChange[]): StateMachine {
  const machine = new StateMachine();
  for (const change of changes) applyNext(machine, { kind: 'auth', change });
  return machine;
}

const added = (user: string): AuthChange => ({ kind: 'addUser', user, passwordHash: 'x', noPassword: false });
const granted = (user: string, role: string): AuthChange => ({ kind: 'grantRole', user, role });
const grant = (role: string, key: string): AuthChange => {
  return { kind: 'grantPermission', role, permission: { type: 'read', key, rangeEnd: '' } };
};
const userOf = (machine: StateMachine, name: string): User => machine.auth.users.get(name)!;

test('users with the same roles share what these allow, also after changes of users', () => {
  const machine = machineWith(
    { kind: 'addRole', role: 'r' },
    { kind: 'addRole', role: 's' },
    grant('r', 'a'),
    grant('s', 'b'),
    ...['ann', 'bob', 'eve'].flatMap((name) => [added(name), granted(name, 'r')]),
    granted('eve', 's'),
  );
  const ofAnn = machine.auth.rangesOf(userOf(machine, 'ann'));
  expect(machine.auth.rangesOf(userOf(machine, 'bob'))).toBe(ofAnn);
  const ofEve = machine.auth.rangesOf(userOf(machine, 'eve'));
  expect([ofAnn.read.has('b'), ofEve.read.has('a'), ofEve.read.has('b')]).toEqual([false, true, true]);
  applyNext(machine, { kind: 'auth', change: added('new') });
  expect(machine.auth.rangesOf(userOf(machine, 'ann'))).toBe(ofAnn);
  applyNext(machine, { kind: 'auth', change: grant('r', 'c') });
  const later = machine.auth.rangesOf(userOf(machine, 'bob'));
  expect([ofAnn.read.has('c'), later.read.has('c')]).toEqual([false, true]);
});

test('a role that is deleted, and another of its name, leave nothing of what it allowed', () => {
  const machine = machineWith({ kind: 'addRole', role: 'r' }, grant('r', 'a'), added('ann'), granted('ann', 'r'));
  expect(machine.auth.rangesOf(userOf(machine, 'ann')).read.has('a')).toBe(true);
  applyNext(machine, { kind: 'auth', change: { kind: 'deleteRole', role: 'r' } });
  expect(machine.auth.rangesOf(userOf(machine, 'ann')).read.has('a')).toBe(false);
  for (const change of [{ kind: 'addRole', role: 'r' }, granted('ann', 'r')] as const) {
    applyNext(machine, { kind: 'auth', change });
  }
  expect(machine.auth.rangesOf(userOf(machine, 'ann')).read.has('a')).toBe(false);
});

test('a change of one role keeps what was derived from the others', () => {
  const machine = machineWith(
    { kind: 'addRole', role: 'r' },
    { kind: 'addRole', role: 's' },
    ...['ann', 'bob', 'eve'].map(added),
    granted('ann', 'r'),
    granted('bob', 's'),
    granted('eve', 'r'),
    granted('eve', 's'),
  );
  const rangesOf = (name: string) => machine.auth.rangesOf(userOf(machine, name));
  const [ann, bob, eve] = ['ann', 'bob', 'eve'].map(rangesOf);
  applyNext(machine, { kind: 'auth', change: grant('s', 'b') });
  expect(rangesOf('ann')).toBe(ann);
  expect(rangesOf('bob')).not.toBe(bob);
  expect(rangesOf('eve')).not.toBe(eve);
  expect(rangesOf('eve').read.has('b')).toBe(true);
});
