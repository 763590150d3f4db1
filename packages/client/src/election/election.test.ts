import { describe, expect, test } from 'vitest';
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
  test('has one leader, which all observers see with its latest value, until the next one succeeds it', async () => {
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
    expect(one.value).toBe('better');
    expect((await observer.leader())?.value).toBe('better');
    expect(await one.resign()).toBe(true);
    await clock.advance(0);
    const two = await campaigning;
    await two.resign();
    await clock.advance(0);
    const tokens = [one.fencingToken, two.fencingToken];
    expect(seen).toEqual([null, `one=first:${tokens[0]}`, `one=better:${tokens[0]}`, `two=second:${tokens[1]}`, null]);
    await expect(one.proclaim('late')).rejects.toThrow(ClosedError);
    expect(await observer.leader()).toBe(null);
  });

  test('elects no second leader when a candidate in the middle of the queue gives up (etcd3 #176)', async () => {
    const { clock, open } = world();
    const leader = await open('a').election('main').campaign('a');
    const controller = new AbortController();
    const second = open('b').election('main').campaign('b', { signal: controller.signal });
    let isThirdElected = false;
    const third = open('c').election('main').campaign('c');
    void third.then(() => (isThirdElected = true));
    await clock.advance(0);
    controller.abort(new Error('given up'));
    await expect(second).rejects.toThrow(/given up/);
    await clock.advance(10 * ttlMs);
    expect(isThirdElected).toBe(false);
    expect(leader.isHeld()).toBe(true);
    await leader.resign();
    await clock.advance(0);
    expect((await third).isHeld()).toBe(true);
  });

  test('is won again automatically after a loss (etcd3 #158, fabric8 #6020)', async () => {
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
    expect((await election.leader())?.value).toBe('one');
    await revoke('main');
    await clock.advance(ttlMs);
    await clock.stall(2 * ttlMs);
    await clock.advance(ttlMs);
    expect(terms).toEqual(['lost: revoked', 'lost: stalled']);
    stop.abort(new Error('enough'));
    expect(await running).toBe(3);
    expect(await election.leader()).toBe(null);
  });

  test('returns the result or throws the error of the work when the process led until the work ended', async () => {
    const { clock, backend, open } = world();
    const election = open('one').election('main');
    const leaders: (string | undefined)[] = [];
    const seen = await election.run(async () => void leaders.push((await election.leader())?.value), { value: 'v' });
    expect(seen).toBe(undefined);
    expect(leaders).toEqual(['v']);
    await expect(
      election.run(() => {
        throw new TypeError('own');
      }),
    ).rejects.toThrow(TypeError);
    expect(await election.leader()).toBe(null);
    await clock.advance(0);
    await backend.close();
    expect(clock.timerCount).toBe(0);
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
        // The next leader waits until the work has ended.
        expect((await there.leader())?.holder).toBe('here');
        terms.push('ended');
      })
      .catch(() => {});
    await clock.advance(5_000);
    expect(await there.leader()).toBe(null);
    const tooLong = here.campaign('x', { wait: 2_000 }).catch((error: unknown) => error);
    await clock.advance(2_000);
    expect(await tooLong).toMatchObject({ message: expect.stringMatching(/2000 ms/) });
    isActive = true;
    await clock.advance(1_000);
    expect((await there.leader())?.holder).toBe('here');
    const next = there.campaign('there');
    isActive = false;
    await clock.advance(1_000);
    expect((await next).isHeld()).toBe(true);
    expect(terms).toEqual(['here', 'ended']);
  });

  test('loses a leadership that was campaigned for when a region becomes passive', async () => {
    const { clock, open } = world();
    let isActive = true;
    const leadership = await open('here')
      .election('main', { eligible: () => isActive })
      .campaign('here');
    isActive = false;
    await clock.advance(1_000);
    expect(leadership.isHeld()).toBe(false);
    expect(leadership.signal.reason).toBeInstanceOf(LeaseLostError);
    const waiting = open('there').election('main').campaign('there');
    await clock.advance(0);
    // The work may not have ended yet, so the entry stays until it is released or expires.
    expect((await open('there').election('main').leader())?.holder).toBe('here');
    await leadership.resign();
    await clock.advance(0);
    expect((await waiting).isHeld()).toBe(true);
  });

  test('stops polling its eligibility once the leadership has ended, however soon that is', async () => {
    const { clock, open } = world();
    let asked = 0;
    const eligible = (): boolean => ++asked > 0;
    const leases = open('one');
    const leadership = await leases.election('main', { eligible }).campaign('one');
    await clock.advance(5_000);
    expect(asked).toBeGreaterThan(5);
    await leadership.resign();
    const before = asked;
    await clock.advance(5_000);
    expect(asked).toBe(before);
    // A listener may do this during an acquisition.
    leases.addListener({
      afterAcquire: (hold) => (hold as unknown as { lose(reason: string): void }).lose('revoked'),
    });
    const lost = await leases.election('main', { eligible }).campaign('one');
    expect(lost.isHeld()).toBe(false);
    await clock.advance(1_000);
    const after = asked;
    await clock.advance(5_000);
    expect(asked).toBe(after);
  });
});
