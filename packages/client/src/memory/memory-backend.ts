import { standing } from '../backend/standing.ts';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  LineWatch,
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

/** Leases within one process: the whole contract, and nothing that outlives the process. */
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
  readonly #lines = new Map<string, StoredEntry[]>();
  readonly #listeners = new Map<string, Set<() => void>>();
  /** One counter for all names, so that a name whose line is empty takes no memory and its tickets still only grow. */
  #lastTicket = 0n;
  #timer: Timer | undefined;
  #timerAtMs = Infinity;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async enter(claim: Claim, options: EnterOptions): Promise<Entered> {
    const nowMs = this.#begin(options.signal);
    const line = this.#line(claim.name, nowMs);
    const ticket = this.#lastTicket + 1n;
    if (options.onlyIfHolds && !standing(shown(line, nowMs), { ...claim, ticket }).holds) {
      return { ticket: undefined, entries: shown(line, nowMs) };
    }
    this.#lastTicket = ticket;
    line.push({ ...claim, ticket, expiresAtMs: nowMs + claim.ttlMs });
    this.#lines.set(claim.name, line);
    this.#arm(nowMs + claim.ttlMs, nowMs);
    this.#changed(claim.name);
    return { ticket, entries: shown(line, nowMs) };
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    const nowMs = this.#begin(signal);
    return shown(this.#line(name, nowMs), nowMs);
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
    const line = this.#line(key.name, nowMs);
    const entry = line.find(({ id, ticket }) => id === key.id && (key.ticket === 0n || ticket === key.ticket));
    if (entry === undefined) return false;
    line.splice(line.indexOf(entry), 1);
    if (line.length === 0) this.#lines.delete(key.name);
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

  watch(name: string, onChange: () => void): LineWatch {
    // Each call has a listener of its own, also when one function is given twice.
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

  /** Without those whose life has ended: they are removed, and that is told. */
  #line(name: string, nowMs: number): StoredEntry[] {
    const line = this.#lines.get(name) ?? [];
    const alive = line.filter((entry) => entry.expiresAtMs > nowMs);
    if (alive.length === line.length) return line;
    if (alive.length === 0) this.#lines.delete(name);
    else this.#lines.set(name, alive);
    this.#changed(name);
    return alive;
  }

  #find(key: EntryKey, nowMs: number): StoredEntry | undefined {
    return this.#line(key.name, nowMs).find(({ id, ticket }) => id === key.id && ticket === key.ticket);
  }

  #changed(name: string): void {
    // Not within the call that changed it: who listens may call again.
    const listeners = [...(this.#listeners.get(name) ?? [])];
    for (const listener of listeners) queueMicrotask(listener);
  }

  /** One timer for the entry that ends first, so that who waits is told of it. */
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
    for (const name of [...this.#lines.keys()]) {
      for (const { expiresAtMs } of this.#line(name, nowMs)) nextMs = Math.min(nextMs, expiresAtMs);
    }
    if (nextMs < Infinity) this.#arm(nextMs, nowMs);
  }
}

function shown(line: readonly StoredEntry[], nowMs: number): readonly Entry[] {
  return line.map(({ expiresAtMs, ...entry }) => ({ ...entry, expiresInMs: expiresAtMs - nowMs }));
}
