import { queuePosition } from '../backend/queue-position.ts';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock, Timer } from '../time/clock.ts';
import type { Signal } from '../time/signal.ts';
import { systemClock } from '../time/system-clock.ts';

export interface MemoryBackendOptions {
  readonly clock?: Clock;
}

interface StoredEntry extends Omit<Entry, 'expiresInMs'> {
  ttlMs: number;
  data: string;
  expiresAtMs: number;
}

/** Leases within one process: the whole contract, but nothing survives the process. */
export function memoryBackend(options: MemoryBackendOptions = {}): LeaseBackend {
  return new MemoryBackend(options.clock ?? systemClock);
}

class MemoryBackend implements LeaseBackend {
  readonly kind = 'memory';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: Number.MAX_SAFE_INTEGER,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  /** No hint is ever lost here. */
  readonly pollIntervalMs = 60_000;
  readonly #clock: Clock;
  readonly #queues = new Map<string, StoredEntry[]>();
  readonly #listeners = new Map<string, Set<() => void>>();
  /** One counter for all names, so that a name with an empty queue takes no memory and its numbers still only grow. */
  #lastSequence = 0n;
  #timer: Timer | undefined;
  #timerAtMs = Infinity;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async enter(claim: Claim, options: EnterOptions): Promise<Entered> {
    const nowMs = this.#begin(options.signal);
    const queue = this.#queue(claim.name, nowMs);
    const sequence = this.#lastSequence + 1n;
    if (options.onlyIfHolds && !queuePosition(shown(queue, nowMs), { ...claim, sequence }).holds) {
      return { sequence: undefined, entries: shown(queue, nowMs) };
    }
    this.#lastSequence = sequence;
    queue.push({ ...claim, sequence, expiresAtMs: nowMs + claim.ttlMs });
    this.#queues.set(claim.name, queue);
    this.#arm(nowMs + claim.ttlMs, nowMs);
    this.#changed(claim.name);
    return { sequence, entries: shown(queue, nowMs) };
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    const nowMs = this.#begin(signal);
    return shown(this.#queue(name, nowMs), nowMs);
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const nowMs = this.#begin(signal);
    return renewals.map((renewal) => {
      const entry = this.#find(renewal, nowMs);
      if (entry === undefined) return false;
      entry.ttlMs = renewal.ttlMs;
      entry.expiresAtMs = nowMs + renewal.ttlMs;
      this.#arm(entry.expiresAtMs, nowMs);
      return true;
    });
  }

  async leave(key: EntryKey, signal: Signal): Promise<boolean> {
    const nowMs = this.#begin(signal);
    const queue = this.#queue(key.name, nowMs);
    const entry = queue.find(({ id, sequence }) => id === key.id && (key.sequence === 0n || sequence === key.sequence));
    if (entry === undefined) return false;
    queue.splice(queue.indexOf(entry), 1);
    if (queue.length === 0) this.#queues.delete(key.name);
    this.#changed(key.name);
    return true;
  }

  async update(key: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const entry = this.#find(key, this.#begin(signal));
    if (entry === undefined) return false;
    entry.data = data;
    this.#changed(key.name);
    return true;
  }

  watch(name: string, onChange: () => void): QueueWatch {
    // A wrapper for each call, so that one function can be passed twice.
    const listener = (): void => onChange();
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return {
      close: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(name) === listeners) this.#listeners.delete(name);
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#listeners.clear();
  }

  #begin(signal: Signal): number {
    signal.throwIfAborted();
    if (this.#isClosed) throw new BackendError(this.kind, 'closed', 'the backend has been closed');
    return this.#clock.now().monotonicMs;
  }

  /** The queue without expired entries. They are removed, and watches get a hint. */
  #queue(name: string, nowMs: number): StoredEntry[] {
    const queue = this.#queues.get(name) ?? [];
    const live = queue.filter((entry) => entry.expiresAtMs > nowMs);
    if (live.length === queue.length) return queue;
    if (live.length === 0) this.#queues.delete(name);
    else this.#queues.set(name, live);
    this.#changed(name);
    return live;
  }

  #find(key: EntryKey, nowMs: number): StoredEntry | undefined {
    return this.#queue(key.name, nowMs).find(({ id, sequence }) => id === key.id && sequence === key.sequence);
  }

  #changed(name: string): void {
    // Not within the call that made the change, because a listener may call the backend again.
    const listeners = [...(this.#listeners.get(name) ?? [])];
    for (const listener of listeners) queueMicrotask(listener);
  }

  /** One timer for the entry that expires first, so that waiters get a hint of its expiry. */
  #arm(atMs: number, nowMs: number): void {
    if (atMs >= this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.setTimer(atMs - nowMs, () => this.#expire());
  }

  #expire(): void {
    this.#timerAtMs = Infinity;
    const nowMs = this.#clock.now().monotonicMs;
    let nextMs = Infinity;
    for (const name of [...this.#queues.keys()]) {
      for (const { expiresAtMs } of this.#queue(name, nowMs)) nextMs = Math.min(nextMs, expiresAtMs);
    }
    if (nextMs < Infinity) this.#arm(nextMs, nowMs);
  }
}

function shown(queue: readonly StoredEntry[], nowMs: number): readonly Entry[] {
  return queue.map(({ expiresAtMs, ...entry }) => ({ ...entry, expiresInMs: expiresAtMs - nowMs }));
}
