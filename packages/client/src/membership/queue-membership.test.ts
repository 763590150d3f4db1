import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { BackendError } from '../errors/backend-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { NoMembersError } from '../errors/no-members-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import type { LeaseManager } from '../lease-manager.ts';
import { LeaseRegistry } from '../leases/lease-registry.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { systemRandom } from '../random/system-random.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { FakeLeaseManager } from '../testing/fake-lease-manager.ts';
import { joinMembership } from './queue-membership.ts';
import type { Changes } from './snapshot.ts';

const ttlMs = 3_000;

function world(): { clock: FakeClock; backend: ReturnType<typeof memoryBackend>; join: (id: string) => LeaseManager } {
  const clock = new FakeClock();
  const backend = memoryBackend({ clock });
  return { clock, backend, join: (holder) => createLeaseManager({ backend, clock, holder, ttlMs }) };
}

const ids = (members: readonly { id: string }[]): string[] => members.map(({ id }) => id);

describe('membership', () => {
  test('shows the members, reports changes in order and begins with the current list', async () => {
    const { clock, join } = world();
    const one = await join('one').membership('group', { metadata: { address: '10.0.0.1' } });
    expect(one.snapshot.members).toStrictEqual([one.self]);
    expect(one.self.metadata).toStrictEqual({ address: '10.0.0.1' });
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { snapshot, added, removed, changed } of one.watch()) {
        seen.push([snapshot.members, added, removed, changed].map((members) => ids(members).join('+')).join(' '));
      }
    })();
    await clock.advance(0);
    const two = await join('two').membership('group');
    await clock.advance(0);
    const three = await join('three').membership('group', { weight: 2 });
    await clock.advance(0);
    await two[Symbol.asyncDispose]();
    await clock.advance(0);
    // The same id with another weight replaces the previous member.
    await join('three').membership('group', { weight: 3 });
    await clock.advance(0);
    expect(seen).toEqual(['one   ', 'one+two two  ', 'one+three+two three  ', 'one+three  two ', 'one+three   three']);
    expect(three.snapshot.members.find(({ id }) => id === 'three')?.weight).toBe(3);
    await one[Symbol.asyncDispose]();
    await expect(watching).rejects.toThrow(ClosedError);
    expect(() => one.owner('thing')).toThrow(ClosedError);
    expect(one.owns('thing')).toBe(false);
  });

  test('assigns every resource alike on all members, and moves only those of a member that left', async () => {
    const { clock, join } = world();
    const members = await Promise.all(['one', 'two', 'three'].map((id) => join(id).membership('group')));
    await clock.advance(0);
    const names = Array.from({ length: 100 }, (_, at) => `shard-${at}`);
    const before = names.map((name) => members[0]!.owner(name).id);
    for (const member of members) expect(names.map((name) => member.owner(name).id)).toStrictEqual(before);
    expect(names.every((name) => members.filter((member) => member.owns(name)).length === 1)).toBe(true);
    await members[2]![Symbol.asyncDispose]();
    await clock.advance(0);
    for (const [at, name] of names.entries()) {
      if (before[at] !== 'three') expect(members[0]!.owner(name).id).toBe(before[at]);
    }
  });

  test('owns nothing when its own entry may have expired, and joins again automatically', async () => {
    const { clock, backend, join } = world();
    const one = await join('one').membership('group');
    expect(one.owns('thing')).toBe(true);
    const [entry] = await backend.list('membership/group', new AbortController().signal);
    await backend.leave(entry!, new AbortController().signal);
    await clock.advance(ttlMs);
    expect(one.owns('thing')).toBe(true);
    const [again] = await backend.list('membership/group', new AbortController().signal);
    expect(again!.sequence).toBeGreaterThan(entry!.sequence);
    // Stopped for longer than its TTL: not a member at the first check.
    const stalled = clock.stall(2 * ttlMs);
    expect(one.owns('thing')).toBe(false);
    await stalled;
    await clock.advance(ttlMs);
    expect(one.owns('thing')).toBe(true);
    const members = (await backend.list('membership/group', new AbortController().signal)).length;
    expect(members).toBe(1);
  });

  test('leaves while it is not eligible, and keeps watching', async () => {
    const { clock, backend, join } = world();
    let isActive = false;
    const passive = await join('passive').membership('group', { eligible: () => isActive });
    expect(() => passive.owner('thing')).toThrow(NoMembersError);
    const other = await join('other').membership('group');
    await clock.advance(0);
    expect(ids(passive.snapshot.members)).toEqual(['other']);
    expect(passive.isMember()).toBe(false);
    isActive = true;
    await clock.advance(1_000);
    expect(ids(other.snapshot.members)).toEqual(['other', 'passive']);
    isActive = false;
    await clock.advance(1_000);
    expect(ids(other.snapshot.members)).toEqual(['other']);
    await passive[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    await backend.close();
    expect(clock.timerCount).toBe(0);
  });

  test('rejects when the backend cannot be reached, also if it would only observe', async () => {
    const leases = new FakeLeaseManager();
    const heal = leases.partition();
    for (const isActive of [true, false]) {
      const outcome = leases.membership('group', { eligible: () => isActive }).catch((error: unknown) => error);
      await leases.clock.advance(10_000);
      expect(await Promise.race([outcome, Promise.resolve()])).toBeInstanceOf(BackendError);
    }
    heal();
    const reading = await leases.membership('group', { eligible: () => false });
    expect([reading.isMember(), reading.snapshot.members]).toEqual([false, []]);
    await leases[Symbol.asyncDispose]();
  });

  test('refuses invalid options before it joins', async () => {
    const { backend, join } = world();
    const leases = join('one');
    await expect(leases.membership('')).rejects.toThrow(UsageError);
    await expect(leases.membership('group', { weight: -1 })).rejects.toThrow(UsageError);
    await expect(leases.membership('group', { weight: Number.NaN })).rejects.toThrow(UsageError);
    await expect(leases.membership('group', { metadata: { big: 'x'.repeat(100_000) } })).rejects.toThrow(UsageError);
    await expect(leases.membership('group', { metadata: { id: 1n } })).rejects.toThrow(UsageError);
    await expect(leases.membership('group', { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow(/^no$/);
    expect(await backend.list('membership/group', new AbortController().signal)).toEqual([]);
  });

  test('leaves nothing in the manager when it has ended', async () => {
    const { clock, backend } = world();
    const registry = new LeaseRegistry({
      backend,
      clock,
      random: systemRandom,
      holder: 'one',
      ttlMs,
      processRef: new ProcessRef({ unref: true }),
    });
    const listeners = (): number => getEventListeners(registry.closed, 'abort').length;
    const before = listeners();
    const membership = await joinMembership(registry, 'group');
    expect(listeners()).toBeGreaterThan(before);
    await membership[Symbol.asyncDispose]();
    expect(listeners()).toBe(before);
    await registry.close(() => {});
  });

  test('ends its watches with the manager, and by their signal', async () => {
    const { clock, backend, join } = world();
    const leases = join('one');
    const one = await leases.membership('group');
    const controller = new AbortController();
    const read = async (changes: AsyncIterable<Changes>): Promise<never> => {
      for await (const _ of changes) continue;
      throw new Error('ended in silence');
    };
    const cancelled = read(one.watch({ signal: controller.signal })).catch((error: unknown) => error);
    const closed = read(one.watch()).catch((error: unknown) => error);
    await clock.advance(0);
    controller.abort(new Error('enough'));
    expect(await cancelled).toMatchObject({ message: 'enough' });
    await leases[Symbol.asyncDispose]();
    expect(await closed).toBeInstanceOf(ClosedError);
    await clock.advance(0);
    await backend.close();
    expect(clock.timerCount).toBe(0);
  });
});
