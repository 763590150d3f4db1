import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import type { Claim, Entered, Entry, EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import type { Signal } from '../../time/signal.ts';
import { BackendError } from '../../errors/backend-error.ts';
import type { ConformanceStore } from './conformance-store.ts';
import { SeededRandom } from './seeded-random.ts';

/** A call that takes longer fails its test instead of hanging it. */
const callDeadlineMs = 20_000;
/** What comes sooner or later is waited for so long: generous, since the machine may be busy. */
const patienceMs = 20_000;
/** Lives of entries that are waited out. Longer where the backend takes no such short ones. */
const shortTtlMs = 600;
const longTtlMs = 60_000;
const backendCount = 3;
const seedLimit = 2 ** 31;
/** What few rounds are of all of them. */
const fewOfAll = 1 / 4;

export interface ConformanceCase {
  readonly name: string;
  /** It waits for lives to end and needs nothing to itself, so that it runs at the same time as others like it. */
  readonly isWaiting?: true;
  run(fixture: ConformanceFixture): Promise<void>;
}

export interface FixtureOptions {
  readonly waitAtMostMs?: number | undefined;
  readonly rounds?: 'all' | 'few' | undefined;
  readonly seed?: number | undefined;
}

/** A store with several backends on it, and short words for what every case does with them. */
export class ConformanceFixture {
  readonly store: ConformanceStore;
  readonly backends: readonly [LeaseBackend, LeaseBackend, LeaseBackend];
  readonly shortTtlMs: number;
  readonly longTtlMs: number;
  /** What is random follows from it. */
  readonly seed: number;
  readonly #opened: LeaseBackend[];
  readonly #patienceMs: number;
  readonly #shareOfRounds: number;

  private constructor(store: ConformanceStore, opened: LeaseBackend[], options: FixtureOptions) {
    const [first, second, third] = opened;
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    this.store = store;
    this.backends = [first, second, third];
    this.#opened = opened;
    this.#patienceMs = options.waitAtMostMs ?? patienceMs;
    this.#shareOfRounds = options.rounds === 'few' ? fewOfAll : 1;
    this.seed = options.seed ?? randomInt(seedLimit);
    this.shortTtlMs = this.minTtlMs(shortTtlMs);
    this.longTtlMs = Math.min(Math.max(longTtlMs, 2 * this.shortTtlMs), first.limits.maxTtlMs);
  }

  static async over(store: ConformanceStore, options: FixtureOptions = {}): Promise<ConformanceFixture> {
    const opened: LeaseBackend[] = [];
    while (opened.length < backendCount) opened.push(await store.open());
    return new ConformanceFixture(store, opened, options);
  }

  /** One more, as a process that comes later would open it. */
  async open(): Promise<LeaseBackend> {
    const backend = await this.store.open();
    this.#opened.push(backend);
    return backend;
  }

  async dispose(): Promise<void> {
    for (const backend of this.#opened) await backend.close();
    await this.store.dispose();
  }

  /** How often to do what is done `all` times when time does not matter. */
  rounds(all: number): number {
    return Math.ceil(all * this.#shareOfRounds);
  }

  random(word: string): SeededRandom {
    return new SeededRandom(this.seed, word);
  }

  /** As close to `ttlMs` as the backend allows. */
  minTtlMs(ttlMs: number): number {
    return Math.max(ttlMs, this.backends[0].limits.minTtlMs);
  }

  /** A name that no other case uses. */
  name(): string {
    return `lease/conformance-${randomUUID()}`;
  }

  claim(name: string, parts: Partial<Claim> = {}): Claim {
    const defaults = { holder: 'a tester', mode: 'exclusive', permits: 1, ttlMs: this.longTtlMs, data: '' } as const;
    return { name, id: randomUUID(), ...defaults, ...parts };
  }

  get signal(): Signal {
    return AbortSignal.timeout(callDeadlineMs);
  }

  /** Enters the queue, and returns the key of the entry. */
  async enter(claim: Claim, backend: LeaseBackend = this.backends[0]): Promise<EntryKey> {
    const { sequence } = await this.enterWith(claim, backend, false);
    assert.ok(sequence !== undefined, 'enter without onlyIfHolds returns a sequence number');
    return { name: claim.name, id: claim.id, sequence };
  }

  enterWith(claim: Claim, backend: LeaseBackend, onlyIfHolds: boolean): Promise<Entered> {
    return backend.enter(claim, { onlyIfHolds, signal: this.signal });
  }

  list(name: string, backend: LeaseBackend = this.backends[0]): Promise<readonly Entry[]> {
    return backend.list(name, this.signal);
  }

  async renew(key: EntryKey, ttlMs: number, backend: LeaseBackend = this.backends[0]): Promise<boolean> {
    const flags = await backend.renew([{ ...key, ttlMs }], this.signal);
    assert.equal(flags.length, 1, 'one flag for each renewal');
    return flags[0] === true;
  }

  leave(key: EntryKey, backend: LeaseBackend = this.backends[0]): Promise<boolean> {
    return backend.leave(key, this.signal);
  }

  update(key: EntryKey, data: string, backend: LeaseBackend = this.backends[0]): Promise<boolean> {
    return backend.update(key, data, this.signal);
  }

  /** Looks again and again until the entry is gone. */
  async untilGone(key: EntryKey, backend: LeaseBackend = this.backends[0]): Promise<void> {
    await this.until('the entry is gone', async () => !contains(await this.list(key.name, backend), key));
  }

  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const startedMs = performance.now();
    while (!(await isSo())) {
      const waitedMs = performance.now() - startedMs;
      assert.ok(waitedMs < this.#patienceMs, `not within ${this.#patienceMs} ms: ${what}`);
      await pause(20);
    }
  }

  /** After connections broke: until the backend answers, which an error of another code ends. */
  async untilAvailable(backend: LeaseBackend): Promise<void> {
    const name = this.name();
    await this.until('the backend answers again', async () => {
      try {
        await this.list(name, backend);
        return true;
      } catch (error) {
        assert.ok(isUnavailable(error), `a broken connection is the code unavailable, not ${String(error)}`);
        return false;
      }
    });
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function contains(entries: readonly Entry[], { id, sequence }: EntryKey): boolean {
  return entries.some((entry) => entry.id === id && entry.sequence === sequence);
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof BackendError && error.backendCode === 'unavailable';
}
