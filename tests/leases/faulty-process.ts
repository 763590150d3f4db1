import type { SeededRandom } from '@tenure/test-support';
import { BackendError } from 'tenure';
import type { Clock, LeaseBackend, Moment, Timer } from 'tenure';
import type { FakeClock } from 'tenure/testing';

export interface FaultRates {
  /** The shares of calls that never reach the backend, and of calls whose answer is lost. */
  readonly lostRequest: number;
  readonly lostAnswer: number;
  /** The share of lost calls that hang, as on a half-open connection; the others fail soon. */
  readonly hang: number;
  readonly lostHint: number;
  readonly slow: number;
  readonly slowMs: number;
  readonly usualMs: number;
}

/**
 * One process in virtual time: its own connection to a backend, which loses and delays calls, and its own clock, which
 * runs no timer while the process is stopped. Time still passes for all processes.
 */
export class FaultyProcess {
  readonly clock: Clock;
  readonly backend: LeaseBackend;
  isCut = false;
  readonly #base: FakeClock;
  readonly #random: SeededRandom;
  readonly #rates: FaultRates;
  #wallJumpedMs = 0;
  #stopped: (() => void)[] | undefined;

  constructor(base: FakeClock, inner: LeaseBackend, options: { random: SeededRandom; rates: FaultRates }) {
    this.#base = base;
    this.#random = options.random;
    this.#rates = options.rates;
    this.clock = { now: () => this.#now(), setTimer: (delayMs, callback) => this.#setTimer(delayMs, callback) };
    this.backend = {
      kind: 'faulty',
      limits: inner.limits,
      pollIntervalMs: 300,
      enter: (claim, given) => this.#call((signal) => inner.enter(claim, { ...given, signal }), given.signal),
      list: (name, given) => this.#call((signal) => inner.list(name, signal), given),
      renew: (renewals, given) => this.#call((signal) => inner.renew(renewals, signal), given),
      leave: (entry, given) => this.#call((signal) => inner.leave(entry, signal), given),
      update: (entry, data, given) => this.#call((signal) => inner.update(entry, data, signal), given),
      watch: (name, onChange) => inner.watch(name, () => this.#hint(onChange)),
      close: async () => {},
    };
  }

  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** As after SIGSTOP: neither timers nor answers reach it. */
  stop(): void {
    this.#stopped ??= [];
  }

  resume(): void {
    const late = this.#stopped ?? [];
    this.#stopped = undefined;
    for (const callback of late) callback();
  }

  jumpWall(ms: number): void {
    this.#wallJumpedMs += ms;
  }

  #now(): Moment {
    const { monotonicMs, wallMs } = this.#base.now();
    return { monotonicMs, wallMs: wallMs + this.#wallJumpedMs };
  }

  #setTimer(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    const timer = this.#base.setTimer(delayMs, () => this.#deliver(() => (isCancelled ? undefined : callback())));
    return {
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  #deliver(callback: () => void): void {
    if (this.#stopped === undefined) callback();
    else this.#stopped.push(callback);
  }

  async #call<T>(act: (signal: AbortSignal) => Promise<T>, given: AbortSignal): Promise<T> {
    given.throwIfAborted();
    const neverAborts = new AbortController().signal;
    const fate = this.#random.next();
    const { lostRequest, lostAnswer } = this.#rates;
    const isLost = this.isCut || fate < lostRequest;
    const answerIsLost = fate < lostRequest + lostAnswer;
    return await new Promise<T>((resolve, reject) => {
      // The caller no longer waits, but the call may still be executed.
      given.addEventListener('abort', () => reject(given.reason), { once: true });
      const fail = (): void => {
        if (this.#random.chance(this.#rates.hang)) return;
        const error = new BackendError('faulty', 'unavailable', 'the connection was lost');
        this.#base.setTimer(this.#delayMs(), () => this.#deliver(() => reject(error)));
      };
      this.#base.setTimer(this.#delayMs(), () => {
        if (isLost || this.isCut) return fail();
        const done = act(neverAborts);
        if (answerIsLost) return done.then(fail, fail);
        const answer = (settle: () => void): void => {
          const wasCut = this.isCut;
          this.#base.setTimer(this.#delayMs(), () => (wasCut ? fail() : this.#deliver(settle)));
        };
        return done.then(
          (value) => answer(() => resolve(value)),
          (error: unknown) => answer(() => reject(error)),
        );
      });
    });
  }

  #hint(onChange: () => void): void {
    if (this.isCut || this.#random.chance(this.#rates.lostHint)) return;
    this.#base.setTimer(this.#delayMs(), () => this.#deliver(onChange));
  }

  #delayMs(): number {
    const { slow, slowMs, usualMs } = this.#rates;
    return this.#random.next() * (this.#random.chance(slow) ? slowMs : usualMs);
  }
}
