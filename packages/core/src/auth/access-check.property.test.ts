import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { Command } from '../state-machine/command.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import { keyCommand } from '../testing/histories.ts';
import { NaiveAccess } from '../testing/naive-access.ts';
import { applyNext, keysOf, put } from '../testing/requests.ts';
import type { AuthChange, Requester } from './auth-types.ts';

const runs = { commit: 150, ci: 800, soak: 20_000 }[inject('effort')];

const user = fc.constantFrom('ann', 'bob');
const role = fc.constantFrom('r1', 'r2', 'root');
const range = fc.record({
  key: fc.constantFrom('a', 'ab', 'b', 'c', '\0', 'd', '\xff'),
  rangeEnd: fc.constantFrom('', '', '\0', 'b', 'c', 'd', '\xff'),
});
const type = fc.constantFrom('read' as const, 'write' as const, 'readWrite' as const);

const change: fc.Arbitrary<AuthChange> = fc.oneof(
  user.map((name): AuthChange => ({ kind: 'addUser', user: name, passwordHash: 'x', noPassword: false })),
  { weight: 1, arbitrary: user.map((name): AuthChange => ({ kind: 'deleteUser', user: name })) },
  user.map((name): AuthChange => ({ kind: 'changePassword', user: name, passwordHash: 'y' })),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('grantRole' as const), user, role }) },
  fc.record({ kind: fc.constant('revokeRole' as const), user, role }),
  {
    weight: 2,
    arbitrary: role.filter((name) => name !== 'root').map((name): AuthChange => ({ kind: 'addRole', role: name })),
  },
  role.map((name): AuthChange => ({ kind: 'deleteRole', role: name })),
  {
    weight: 8,
    arbitrary: fc.tuple(role, type, range).map(([name, of, keys]): AuthChange => ({
      kind: 'grantPermission',
      role: name,
      permission: { type: of, ...keys },
    })),
  },
  fc.tuple(role, range).map(([name, keys]): AuthChange => ({ kind: 'revokePermission', role: name, ...keys })),
);

interface Asked {
  readonly command: Command;
  readonly user: string;
  /** How far behind the current auth revision the identity was established; undefined: no identity. */
  readonly behind: number | undefined;
}

const asked: fc.Arbitrary<Asked> = fc.record({
  command: keyCommand,
  user: fc.constantFrom('ann', 'ann', 'bob', 'root', 'stranger'),
  behind: fc.constantFrom<(number | undefined)[]>(0, 0, 0, 1, 3, undefined),
});

const steps = fc.array(fc.oneof({ weight: 1, arbitrary: change }, { weight: 2, arbitrary: asked }), {
  minLength: 5,
  maxLength: 60,
  size: 'max',
});

const asRoot = (machine: StateMachine): Requester => ({ user: 'root', authRevision: machine.auth.revision });

/** With the user root, some roles and permissions, and authentication enabled. */
function prepared(): { machine: StateMachine; model: NaiveAccess } {
  const machine = new StateMachine();
  const model = new NaiveAccess();
  const changes: AuthChange[] = [
    { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
    { kind: 'grantRole', user: 'root', role: 'root' },
    { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
    { kind: 'addRole', role: 'r1' },
    { kind: 'grantRole', user: 'ann', role: 'r1' },
    { kind: 'grantPermission', role: 'r1', permission: { type: 'readWrite', key: 'a', rangeEnd: 'c' } },
  ];
  for (const one of changes) {
    applyNext(machine, { kind: 'auth', change: one });
    model.changed(one);
  }
  applyNext(machine, { kind: 'auth', change: { kind: 'enable' } });
  model.enabledAt = model.revision;
  return { machine, model };
}

/** Leases with keys that ann may write, so many that the check is remembered, and with keys that she may not. */
const leased: readonly Command[] = [
  { kind: 'leaseGrant', id: 1n, ttlMs: 1000, label: '' },
  { kind: 'leaseGrant', id: 2n, ttlMs: 1000, label: '' },
  put('ab', '1', { lease: 1n }),
  ...Array.from({ length: 40 }, (_, i) => put(`a${i}`, '1', { lease: 1n })),
  put('b', '1', { lease: 2n }),
  put('d', '1', { lease: 2n }),
];

function changeBoth(machine: StateMachine, model: NaiveAccess, one: AuthChange): void {
  const [response] = applyNext(machine, { kind: 'auth', change: one, by: asRoot(machine) }).responses;
  if (response?.kind !== 'error') model.changed(one);
  expect(machine.auth.revision).toBe(model.revision);
}

/** Applied by the requester; and on a machine without authentication, if the model allows it. */
function askBoth(machine: StateMachine, open: StateMachine, model: NaiveAccess, { command, ...who }: Asked): void {
  const authRevision = who.behind === undefined ? 0 : Math.max(machine.auth.revision - who.behind, 1);
  const by: Requester = { user: who.behind === undefined ? '' : who.user, authRevision };
  const refused = model.refusal(command, by, (id) => keysOf(open, id));
  const [response] = applyNext(machine, { ...command, by }).responses;
  if (refused === undefined) expect(response).toEqual(applyNext(open, command).responses[0]);
  else expect(response).toEqual({ kind: 'error', code: refused });
  expect(machine.hashKv(0)).toEqual(open.hashKv(0));
  expect([...machine.leases()].map(({ id }) => id)).toEqual([...open.leases()].map(({ id }) => id));
}

function copyOf(machine: StateMachine): StateMachine {
  const reader = new SnapshotReader();
  for (const chunk of machine.snapshotForEngine()) reader.push(chunk);
  return reader.finish();
}

test('a requester can do exactly what the permissions allow, and a refused command changes nothing', () => {
  fc.assert(
    fc.property(steps, fc.nat(), (history, cutAt) => {
      const { machine: first, model } = prepared();
      let machine = first;
      const open = new StateMachine();
      for (const command of leased) askBoth(machine, open, model, { command, user: 'root', behind: 0 });
      for (const [index, step] of history.entries()) {
        // Users and roles survive a snapshot.
        if (index === cutAt % history.length) machine = copyOf(machine);
        if ('command' in step) askBoth(machine, open, model, step);
        else changeBoth(machine, model, step);
      }
    }),
    { numRuns: runs },
  );
});

test('a lease ends on time, whatever happened to its owner', () => {
  const { machine } = prepared();
  const by: Requester = { user: 'ann', authRevision: machine.auth.revision };
  applyNext(machine, { kind: 'leaseGrant', id: 1n, ttlMs: 1000, label: '', by });
  const { renewIndex } = machine.lease(1n)!;
  applyNext(machine, { kind: 'auth', change: { kind: 'deleteUser', user: 'ann' }, by: asRoot(machine) });
  const [response] = applyNext(machine, { kind: 'expireLeases', leases: [{ id: 1n, renewIndex }] }).responses;
  expect(response).toMatchObject({ kind: 'expireLeases', expired: [1n] });
});
