import { type Command, type Requester, rootName, StateMachine } from '@tenure/core';
import { describe, expect, test } from 'vitest';
import type { Lessor } from '../leases/lessor.ts';
import { LeaseList } from './lease-list.ts';

const lessor = (): Lessor => ({ deadlineMs: () => 0, remainingMs: () => 1 }) as unknown as Lessor;
const denied = { message: 'etcdserver: permission denied' };
const old = { message: 'etcdserver: revision of auth store is old' };

class World {
  readonly state = new StateMachine();

  constructor() {
    this.apply(
      { kind: 'createCluster', clusterId: 7n, secret: 'x' },
      { kind: 'auth', change: { kind: 'addUser', user: rootName, passwordHash: '', noPassword: true } },
      { kind: 'auth', change: { kind: 'grantRole', user: rootName, role: rootName } },
      { kind: 'auth', change: { kind: 'addUser', user: 'ann', passwordHash: '', noPassword: true } },
      { kind: 'auth', change: { kind: 'addRole', role: 'reads' } },
      { kind: 'auth', change: { kind: 'grantRole', user: 'ann', role: 'reads' } },
      {
        kind: 'auth',
        change: { kind: 'grantPermission', role: 'reads', permission: { type: 'read', key: 'k/', rangeEnd: 'k0' } },
      },
    );
  }

  apply(...commands: Command[]): void {
    const { state } = this;
    const entry = { index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands };
    for (const { kind } of state.apply(entry).responses) expect(kind).not.toBe('error');
  }

  as(user: string): Requester {
    return { user, authRevision: this.state.auth.revision };
  }

  /** Leases from 1 on, each with that many keys below k/. */
  grant(leases: number, keys: number): void {
    for (let id = 1n; id <= leases; id += 1n) {
      this.apply({ kind: 'leaseGrant', id, ttlMs: 1_000, label: '' });
      for (let at = 0; at < keys; at += 1) this.attach(id, `k/${id}/${at}`);
    }
  }

  attach(lease: bigint, key: string, by?: Requester): void {
    const put = { key, value: '', lease, prevKv: false, ignoreValue: false, ignoreLease: false };
    this.apply({ kind: 'put', put, ...(by === undefined ? {} : { by }) });
  }

  enable(): void {
    this.apply({ kind: 'auth', change: { kind: 'enable' } });
  }

  list(by: Requester | undefined): LeaseList {
    return new LeaseList({ state: this.state, by, lessor, withDetails: false });
  }
}

function stepsOf(list: LeaseList): number {
  let steps = 1;
  while (!list.step()) steps += 1;
  return steps;
}

describe('the list of leases while authentication is enabled', () => {
  test('is for users who may read every key of every lease', () => {
    const world = new World();
    world.grant(10, 2);
    world.enable();
    expect(stepsOf(world.list(world.as('ann')))).toBeGreaterThan(0);
    world.attach(9n, 'secret', world.as(rootName));
    expect(() => stepsOf(world.list(world.as('ann')))).toThrow(expect.objectContaining(denied));
    expect(stepsOf(world.list(world.as(rootName)))).toBeGreaterThan(0);
    expect(() => stepsOf(world.list(undefined))).toThrow('etcdserver: user name is empty');
  });

  test('checks each lease by the keys and the permissions of the step that lists it', () => {
    const world = new World();
    world.grant(2_500, 0);
    world.enable();
    const list = world.list(world.as('ann'));
    expect(list.step()).toBe(false);
    world.attach(2_400n, 'secret', world.as(rootName));
    expect(() => stepsOf(list)).toThrow(expect.objectContaining(denied));

    const another = world.list(world.as(rootName));
    expect(another.step()).toBe(false);
    world.apply({
      kind: 'auth',
      change: { kind: 'changePassword', user: rootName, passwordHash: 'y' },
      by: world.as(rootName),
    });
    expect(() => stepsOf(another)).toThrow(expect.objectContaining(old));
  });

  test('is refused when authentication is enabled while it is built', () => {
    const world = new World();
    world.grant(2_500, 0);
    const list = world.list(undefined);
    expect(list.step()).toBe(false);
    world.enable();
    expect(() => stepsOf(list)).toThrow('etcdserver: user name is empty');
  });

  test('takes a step for each thousand of leases and keys, and without authentication of leases', () => {
    const world = new World();
    world.grant(500, 20);
    const unchecked = stepsOf(world.list(undefined));
    world.enable();
    expect(stepsOf(world.list(world.as('ann'))) - unchecked).toBeGreaterThanOrEqual(9);
  });
});
