import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'vitest';
import { BackendError } from '../errors/backend-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { NoMembersError } from '../errors/no-members-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import type { LeaseManager } from '../lease-manager.ts';
import { LeaseKeeper } from '../leases/lease-keeper.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { FakeLeaseManager } from '../testing/fake-lease-manager.ts';
import { joinMembership } from './line-membership.ts';
import type { Changes } from './snapshot.ts';

const ttlMs = 3_000;

function world(): { clock: FakeClock; backend: ReturnType<typeof memoryBackend>; join: (id: string) => LeaseManager } {
  const clock = new FakeClock();
  const backend = memoryBackend({ clock });
  return { clock, backend, join: (holder) => createLeaseManager({ backend, clock, holder, ttlMs }) };
}

const ids = (members: readonly { id: string }[]): string[] => members.map(({ id }) => id);

describe('membership', () => {
  test('shows who is there, tells of changes in order and begins with what is there now', async () => {
    const { clock, join } = world();
    const one = await join('one').membership('group', { metadata: { address: '10.0.0.1' } });
    assert.deepEqual(one.snapshot.members, [one.self]);
    assert.deepEqual(one.self.metadata, { address: '10.0.0.1' });
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
    // The same id with another weight takes the place of the one before.
    await join('three').membership('group', { weight: 3 });
    await clock.advance(0);
    assert.deepEqual(seen, [
      'one   ',
      'one+two two  ',
      'one+three+two three  ',
      'one+three  two ',
      'one+three   three',
    ]);
    assert.equal(three.snapshot.members.find(({ id }) => id === 'three')?.weight, 3);
    await one[Symbol.asyncDispose]();
    await assert.rejects(watching, ClosedError);
    assert.throws(() => one.owner('thing'), ClosedError);
    assert.equal(one.owns('thing'), false);
  });

  test('says of every resource whose it is, everywhere the same, and moves only that of who went', async () => {
    const { clock, join } = world();
    const members = await Promise.all(['one', 'two', 'three'].map((id) => join(id).membership('group')));
    await clock.advance(0);
    const names = Array.from({ length: 100 }, (_, at) => `shard-${at}`);
    const before = names.map((name) => members[0]!.owner(name).id);
    for (const member of members)
      assert.deepEqual(
        names.map((name) => member.owner(name).id),
        before,
      );
    assert.ok(names.every((name) => members.filter((member) => member.owns(name)).length === 1));
    await members[2]![Symbol.asyncDispose]();
    await clock.advance(0);
    for (const [at, name] of names.entries()) {
      if (before[at] !== 'three') assert.equal(members[0]!.owner(name).id, before[at]);
    }
  });

  test('owns nothing when its own entry can not be counted on, and joins anew by itself', async () => {
    const { clock, backend, join } = world();
    const one = await join('one').membership('group');
    assert.equal(one.owns('thing'), true);
    const [entry] = await backend.list('membership/group', new AbortController().signal);
    await backend.leave(entry!, new AbortController().signal);
    await clock.advance(ttlMs);
    assert.equal(one.owns('thing'), true);
    const [again] = await backend.list('membership/group', new AbortController().signal);
    assert.ok(again!.ticket > entry!.ticket);
    // Stopped for longer than its life lasts: not a member at the first look.
    const stalled = clock.stall(2 * ttlMs);
    assert.equal(one.owns('thing'), false);
    await stalled;
    await clock.advance(ttlMs);
    assert.equal(one.owns('thing'), true);
    const members = (await backend.list('membership/group', new AbortController().signal)).length;
    assert.equal(members, 1);
  });

  test('leaves while it is not eligible, and goes on watching', async () => {
    const { clock, backend, join } = world();
    let isActive = false;
    const passive = await join('passive').membership('group', { eligible: () => isActive });
    assert.throws(() => passive.owner('thing'), NoMembersError);
    const other = await join('other').membership('group');
    await clock.advance(0);
    assert.deepEqual(ids(passive.snapshot.members), ['other']);
    assert.equal(passive.isMember(), false);
    isActive = true;
    await clock.advance(1_000);
    assert.deepEqual(ids(other.snapshot.members), ['other', 'passive']);
    isActive = false;
    await clock.advance(1_000);
    assert.deepEqual(ids(other.snapshot.members), ['other']);
    await passive[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    await backend.close();
    assert.equal(clock.timerCount, 0);
  });

  test('is told when there is no reaching the backend, also when it would only look', async () => {
    const leases = new FakeLeaseManager();
    const heal = leases.partition();
    for (const isActive of [true, false]) {
      const outcome = leases.membership('group', { eligible: () => isActive }).catch((error: unknown) => error);
      await leases.clock.advance(10_000);
      assert.ok((await Promise.race([outcome, Promise.resolve()])) instanceof BackendError);
    }
    heal();
    const looking = await leases.membership('group', { eligible: () => false });
    assert.deepEqual([looking.isMember(), looking.snapshot.members], [false, []]);
    await leases[Symbol.asyncDispose]();
  });

  test('refuses what can not be right before it joins', async () => {
    const { backend, join } = world();
    const leases = join('one');
    await assert.rejects(leases.membership(''), UsageError);
    await assert.rejects(leases.membership('group', { weight: -1 }), UsageError);
    await assert.rejects(leases.membership('group', { weight: Number.NaN }), UsageError);
    await assert.rejects(leases.membership('group', { metadata: { big: 'x'.repeat(100_000) } }), UsageError);
    await assert.rejects(leases.membership('group', { metadata: { id: 1n } }), UsageError);
    await assert.rejects(leases.membership('group', { signal: AbortSignal.abort(new Error('no')) }), /^Error: no$/);
    assert.deepEqual(await backend.list('membership/group', new AbortController().signal), []);
  });

  test('leaves nothing with the manager that outlives it', async () => {
    const { clock, backend } = world();
    const keeper = new LeaseKeeper({
      backend,
      clock,
      holder: 'one',
      ttlMs,
      processRef: new ProcessRef({ unref: true }),
    });
    const listeners = (): number => getEventListeners(keeper.closed, 'abort').length;
    const before = listeners();
    const membership = await joinMembership(keeper, 'group');
    assert.ok(listeners() > before);
    await membership[Symbol.asyncDispose]();
    assert.equal(listeners(), before);
    await keeper.close(() => {});
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
    const cancelled = assert.rejects(read(one.watch({ signal: controller.signal })), /^Error: enough$/);
    const closed = assert.rejects(read(one.watch()), ClosedError);
    await clock.advance(0);
    controller.abort(new Error('enough'));
    await cancelled;
    await leases[Symbol.asyncDispose]();
    await closed;
    await clock.advance(0);
    await backend.close();
    assert.equal(clock.timerCount, 0);
  });
});
