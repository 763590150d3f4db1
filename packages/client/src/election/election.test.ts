import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ClosedError } from '../errors/closed-error.ts';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import type { LeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';

const ttlMs = 3_000;

function world() {
  const clock = new FakeClock();
  const backend = memoryBackend({ clock });
  const open = (holder: string): LeaseManager => createLeaseManager({ backend, clock, holder, ttlMs });
  const revoke = async (name: string): Promise<void> => {
    const [entry] = await backend.list(`election/${name}`, new AbortController().signal);
    await backend.leave(entry!, new AbortController().signal);
  };
  return { clock, backend, open, revoke };
}

describe('an election', () => {
  test('has one leader, whom everybody sees with its latest value, and whom the next one follows', async () => {
    const { clock, open } = world();
    const observer = open('observer').election('main');
    const seen: (string | null)[] = [];
    void (async () => {
      for await (const leader of observer.observe()) {
        seen.push(leader === null ? null : `${leader.holder}=${leader.value}:${leader.fencingToken}`);
      }
    })().catch(() => {});
    await clock.advance(0);
    const one = await open('one').election('main').campaign('first');
    const campaigning = open('two').election('main').campaign('second');
    await clock.advance(0);
    await one.proclaim('better');
    await clock.advance(0);
    assert.equal(one.value, 'better');
    assert.equal((await observer.leader())?.value, 'better');
    assert.equal(await one.resign(), true);
    await clock.advance(0);
    const two = await campaigning;
    await two.resign();
    await clock.advance(0);
    const tokens = [one.fencingToken, two.fencingToken];
    assert.deepEqual(seen, [
      null,
      `one=first:${tokens[0]}`,
      `one=better:${tokens[0]}`,
      `two=second:${tokens[1]}`,
      null,
    ]);
    await assert.rejects(one.proclaim('late'), ClosedError);
    assert.equal(await observer.leader(), null);
  });

  test('elects no second leader when one in the middle of the line gives up (etcd3 #176)', async () => {
    const { clock, open } = world();
    const leader = await open('a').election('main').campaign('a');
    const controller = new AbortController();
    const second = open('b').election('main').campaign('b', { signal: controller.signal });
    let isThirdElected = false;
    const third = open('c').election('main').campaign('c');
    void third.then(() => (isThirdElected = true));
    await clock.advance(0);
    controller.abort(new Error('given up'));
    await assert.rejects(second, /given up/);
    await clock.advance(10 * ttlMs);
    assert.equal(isThirdElected, false);
    assert.equal(leader.isHeld(), true);
    await leader.resign();
    await clock.advance(0);
    assert.equal((await third).isHeld(), true);
  });

  test('is won again by itself after a loss (etcd3 #158, fabric8 #6020)', async () => {
    const { clock, open, revoke } = world();
    const election = open('one').election('main');
    const terms: string[] = [];
    const stop = new AbortController();
    const running = election.run(
      async (leadership, signal) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        const loss = signal.reason instanceof LeaseLostError ? await leadership.lost : undefined;
        terms.push(loss === undefined ? 'told to stop' : `lost: ${loss.reason}`);
        return terms.length;
      },
      { signal: stop.signal },
    );
    await clock.advance(0);
    assert.equal((await election.leader())?.value, 'one');
    await revoke('main');
    await clock.advance(ttlMs);
    await clock.stall(2 * ttlMs);
    await clock.advance(ttlMs);
    assert.deepEqual(terms, ['lost: revoked', 'lost: stalled']);
    stop.abort(new Error('enough'));
    assert.equal(await running, 3);
    assert.equal(await election.leader(), null);
  });

  test('gives what the work gave, and throws what the work threw, when it led to the end', async () => {
    const { clock, backend, open } = world();
    const election = open('one').election('main');
    const leaders: (string | undefined)[] = [];
    const seen = await election.run(async () => void leaders.push((await election.leader())?.value), { value: 'v' });
    assert.equal(seen, undefined);
    assert.deepEqual(leaders, ['v']);
    await assert.rejects(
      election.run(() => {
        throw new TypeError('own');
      }),
      TypeError,
    );
    assert.equal(await election.leader(), null);
    await clock.advance(0);
    await backend.close();
    assert.equal(clock.timerCount, 0);
  });

  test('is left while a region is passive, and entered again when it is active', async () => {
    const { clock, open } = world();
    let isActive = false;
    const here = open('here').election('main', { eligible: () => isActive });
    const there = open('there').election('main');
    const terms: string[] = [];
    const untilTold = (signal: { addEventListener(type: 'abort', listener: () => void): void }): Promise<void> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    void here
      .run(async (_leadership, signal) => {
        terms.push('here');
        await untilTold(signal);
        // The next leader waits for the work to have ended.
        assert.equal((await there.leader())?.holder, 'here');
        terms.push('ended');
      })
      .catch(() => {});
    await clock.advance(5_000);
    assert.equal(await there.leader(), null);
    const tooLong = assert.rejects(here.campaign('x', { wait: 2_000 }), /2000 ms/);
    await clock.advance(2_000);
    await tooLong;
    isActive = true;
    await clock.advance(1_000);
    assert.equal((await there.leader())?.holder, 'here');
    const next = there.campaign('there');
    isActive = false;
    await clock.advance(1_000);
    assert.equal((await next).isHeld(), true);
    assert.deepEqual(terms, ['here', 'ended']);
  });

  test('loses a leadership that was campaigned for when a region becomes passive', async () => {
    const { clock, open } = world();
    let isActive = true;
    const leadership = await open('here')
      .election('main', { eligible: () => isActive })
      .campaign('here');
    isActive = false;
    await clock.advance(1_000);
    assert.equal(leadership.isHeld(), false);
    assert.ok(leadership.signal.reason instanceof LeaseLostError);
    const waiting = open('there').election('main').campaign('there');
    await clock.advance(0);
    // Its work may not have ended yet, so its place is kept until it says so, or its time runs out.
    assert.equal((await open('there').election('main').leader())?.holder, 'here');
    await leadership.resign();
    await clock.advance(0);
    assert.equal((await waiting).isHeld(), true);
  });

  test('asks nobody any more whether it is eligible once the leadership has ended, however soon that was', async () => {
    const { clock, open } = world();
    let asked = 0;
    const eligible = (): boolean => ++asked > 0;
    const leases = open('one');
    const leadership = await leases.election('main', { eligible }).campaign('one');
    await clock.advance(5_000);
    assert.ok(asked > 5);
    await leadership.resign();
    const before = asked;
    await clock.advance(5_000);
    assert.equal(asked, before);
    // As a listener may, in the middle of things.
    leases.addListener({
      afterAcquire: (hold) => (hold as unknown as { lose(reason: string): void }).lose('revoked'),
    });
    const lost = await leases.election('main', { eligible }).campaign('one');
    assert.equal(lost.isHeld(), false);
    await clock.advance(1_000);
    const after = asked;
    await clock.advance(5_000);
    assert.equal(asked, after);
  });
});
