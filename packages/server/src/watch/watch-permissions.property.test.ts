import type { AuthChange, AuthState, CommandBody, KvEvent, Permission } from '@tenure/core';
import type { etcdserverpb } from '@tenure/protocol';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { ScriptedCall } from './testing/scripted-call.ts';
import { settle, WatchBench } from './testing/watch-bench.ts';

const users = ['root', 'alice', 'bob', ''] as const;
const roles = ['root', 'one', 'two'] as const;
const bounds = ['a', 'b', 'b\0', 'c'] as const;
/** Above every other bound, and in every range without an end. */
const top = '\xff';
/** Between two neighbours of these nothing begins or ends, so ranges that agree on them are the same. */
const probes = ['\0', '\0\0', ...bounds.flatMap((bound) => [bound, `${bound}\0`]), top];

interface Range {
  readonly key: string;
  readonly rangeEnd: string;
}

interface Seen {
  readonly user: string;
  readonly range: Range;
  readonly from: number;
  readonly received: string[];
  ended: boolean;
}

interface Client {
  readonly call: ScriptedCall;
  readonly open: Map<bigint, Seen>;
}

function holds({ key, rangeEnd }: Range, text: string): boolean {
  if (rangeEnd === '') return text === key;
  return text >= key && (rangeEnd === '\0' || text < rangeEnd);
}

/** The rule itself, read off the lists of users and roles: every key of the range is in one of the permissions. */
function mayRead(auth: AuthState, user: string, range: Range): boolean {
  if (!auth.enabled) return true;
  const granted = auth.users.get(user)?.roles ?? [];
  if (granted.includes('root')) return true;
  const permissions = granted.flatMap((role) => auth.roles.get(role)?.permissions ?? []);
  const readable = permissions.filter(({ type }) => type !== 'write');
  return (
    auth.users.has(user) &&
    probes.every((text) => !holds(range, text) || readable.some((permission) => holds(permission, text)))
  );
}

/** A service whose every response is judged when it is sent, by the auth data of that moment. */
class World {
  readonly bench: WatchBench;
  readonly #clients: Client[] = [];
  readonly #events: KvEvent[] = [];
  readonly #watches: Seen[] = [];
  #asked: Omit<Seen, 'received' | 'ended'> | undefined;
  /** The first violation: it may be found in a turn of the service, whose exceptions no test would catch. */
  violation: unknown;

  constructor(sliceMs: number) {
    this.bench = new WatchBench({ limits: { maxEventsPerStep: 3, maxResponseBytes: 60, sliceMs } });
    for (const role of roles) this.bench.change({ kind: 'addRole', role });
    for (const user of users.slice(0, 3)) {
      this.bench.change({ kind: 'addUser', user, passwordHash: 'hash', noPassword: false });
    }
    this.bench.change({ kind: 'grantRole', user: 'root', role: 'root' });
  }

  open(): void {
    const client: Client = { call: this.bench.open(300), open: new Map() };
    client.call.onSend = (response) => {
      try {
        this.#judge(client, response);
      } catch (error) {
        this.violation ??= error;
      }
    };
    this.#clients.push(client);
  }

  client(n: number): Client {
    return this.#clients[n % this.#clients.length]!;
  }

  ask({ call }: Client, user: string, range: Range, startOffset: number): void {
    if (call.paused) return;
    const { bench } = this;
    const startRevision = startOffset === 0 ? 0 : Math.max(1, bench.revision + startOffset);
    call.requester = bench.requester(user);
    this.#asked = { user, range, from: startRevision === 0 ? bench.revision + 1 : startRevision };
    call.create(range.key, { rangeEnd: Buffer.from(range.rangeEnd, 'latin1'), startRevision: BigInt(startRevision) });
    expect(this.#asked).toBeUndefined();
  }

  apply(commands: readonly CommandBody[]): void {
    const before = this.bench.revision;
    this.bench.apply(...commands);
    for (let at = before + 1; at <= this.bench.revision; at++) {
      this.#events.push(...this.bench.state.history.eventsAt(at));
    }
  }

  async finish(): Promise<void> {
    // Each turn checks at least one watch, and sends what the client has room for.
    for (let round = 0; round < 2; round++) await settle();
    for (const { user, range, ended } of this.#watches) {
      if (!ended) expect(mayRead(this.bench.state.auth, user, range)).toBe(true);
    }
    for (let round = 0; round < 10 || this.bench.service.counts.slowWatchers > 0; round++) {
      for (const { call } of this.#clients) call.read();
      await settle();
    }
    for (const { range, from, received, ended } of this.#watches) {
      const wanted = this.#events.filter(({ kv }) => kv.modRevision >= from && holds(range, kv.key));
      const expected = wanted.map(({ kv }) => `${kv.key}@${kv.modRevision}`);
      expect(received).toEqual(ended ? expected.slice(0, received.length) : expected);
    }
  }

  #judge({ open }: Client, { watchId, created, canceled, cancelReason, events }: etcdserverpb.WatchResponse): void {
    const { auth } = this.bench.state;
    if (created) {
      const { user, range, from } = this.#asked!;
      this.#asked = undefined;
      expect(canceled).toBe(!mayRead(auth, user, range));
      if (canceled) return;
      const seen: Seen = { user, range, from, received: [], ended: false };
      open.set(watchId, seen);
      this.#watches.push(seen);
      return;
    }
    if (watchId === -1n) {
      expect(open.size).toBeGreaterThan(0);
      for (const { user, range } of open.values()) expect(mayRead(auth, user, range)).toBe(true);
      return;
    }
    const seen = open.get(watchId)!;
    expect(mayRead(auth, seen.user, seen.range)).toBe(!canceled);
    for (const { kv } of events) seen.received.push(`${Buffer.from(kv!.key).toString('latin1')}@${kv!.modRevision}`);
    if (!canceled) return;
    expect(cancelReason).toBe('etcdserver: permission denied');
    seen.ended = true;
    open.delete(watchId);
  }
}

const user = fc.constantFrom(...users);
const named = fc.constantFrom(...users.slice(0, 3));
const role = fc.constantFrom(...roles);
const bound = fc.constantFrom(...bounds);
const range: fc.Arbitrary<Range> = fc
  .record({ key: bound, rangeEnd: fc.oneof(fc.constantFrom('', '', '\0'), bound) })
  .filter(({ key, rangeEnd }) => rangeEnd.length < 1 || rangeEnd === '\0' || key < rangeEnd);
const permission: fc.Arbitrary<Permission> = fc
  .tuple(fc.constantFrom('read' as const, 'readWrite' as const, 'write' as const), range)
  .map(([type, each]) => ({ type, ...each }));
const change: fc.Arbitrary<AuthChange> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<AuthChange>({ kind: 'enable' }) },
  { weight: 1, arbitrary: fc.constant<AuthChange>({ kind: 'disable' }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('grantRole' as const), user: named, role }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('revokeRole' as const), user: named, role }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('grantPermission' as const), role, permission }) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(role, range)
      .map(([from, each]): AuthChange => ({ kind: 'revokePermission', role: from, ...each })),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteUser' as const), user: named }) },
  {
    weight: 1,
    arbitrary: named.map((name): AuthChange => ({
      kind: 'addUser',
      user: name,
      passwordHash: 'hash',
      noPassword: false,
    })),
  },
  {
    weight: 1,
    arbitrary: named.map((name): AuthChange => ({ kind: 'changePassword', user: name, passwordHash: 'new' })),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteRole' as const), role }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('addRole' as const), role }) },
);
const command: fc.Arbitrary<CommandBody> = fc.oneof(
  change.map((each): CommandBody => ({ kind: 'auth', change: each })),
  fc.tuple(bound, fc.constantFrom('', 'x'.repeat(40))).map(([key, value]): CommandBody => ({
    kind: 'put',
    put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  })),
  bound.map((key): CommandBody => ({ kind: 'deleteRange', deleteRange: { key, rangeEnd: '', prevKv: false } })),
);
type Step = (world: World) => void | Promise<void>;
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.array(command, { minLength: 1, maxLength: 4 }).map(
      (each): Step =>
        (world) =>
          world.apply(each),
    ),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(fc.nat(2), user, range, fc.integer({ min: -8, max: 2 })).map(
      ([n, name, each, offset]): Step =>
        (world) =>
          world.ask(world.client(n), name, each, offset),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.nat(2).map(
      (n): Step =>
        (world) =>
          world.client(n).call.request({ case: 'progressRequest', value: {} }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.nat(2), fc.nat(5)).map(
      ([n, count]): Step =>
        (world) =>
          world.client(n).call.read(count),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>(() => new Promise((resolve) => setImmediate(resolve))) },
);

test('a watch is sent events while its user may read its range, all of them, and ends when not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 4),
      fc.array(step, { minLength: 10, maxLength: 80 }),
      async (sliceMs, steps) => {
        const world = new World(sliceMs);
        for (let n = 0; n < 3; n++) world.open();
        for (const each of steps) await each(world);
        if (world.violation !== undefined) throw world.violation;
        await world.finish();
        if (world.violation !== undefined) throw world.violation;
      },
    ),
    { numRuns: { commit: 150, ci: 500, soak: 20_000 }[inject('effort')] },
  );
});
