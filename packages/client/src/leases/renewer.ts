import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock, Timer } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { withTimeLimit } from './time-limit.ts';

/** An entry is renewed when a third of its TTL has passed, so that several attempts fit before its end. */
const dueShare = 1 / 3;
/** Shorter than the time between two renewals, so an attempt without an answer leaves time for others. */
const attemptShare = 1 / 6;
const attemptMinMs = 50;
/** After a failure the next attempt comes soon, whatever the TTL. */
const retryShare = 1 / 30;
const retryMinMs = 10;
const retryMaxMs = 1_000;
/** Entries that become due this soon are renewed along with those due now, so that many entries need few calls. */
const earlyShare = 1 / 12;
const renewalsPerCallMax = 500;
/** Entries whose TTLs differ by more go in separate calls, because the shortest TTL sets the limit of its call. */
const ttlSpreadMax = 4;

/** One entry to renew. It is told the outcome of each attempt, always in the order of sending. */
export interface Renewable {
  readonly key: EntryKey;
  readonly ttlMs: number;
  /** Whether it is renewed without a call to `renewNow`. */
  readonly isAutomatic: boolean;
  /** When to call `checkDeadline`, in `ElapsedTime`; Infinity for never. */
  readonly checkDeadlineAtMs: number;
  checkDeadline(): void;
  sent(): void;
  renewed(sentAtMs: number): void;
  failed(error: unknown): void;
  gone(): void;
}

export type RenewalOutcome =
  | { readonly kind: 'renewed' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Schedule {
  dueAtMs: number;
  /** Never rejects. */
  inFlight: Promise<RenewalOutcome> | undefined;
}

interface RenewerOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly time: ElapsedTime;
}

/**
 * Renews all entries of one manager, with one timer and as few calls as possible. Each entry has at most one renewal in
 * flight. A call that fails affects only its entries, and only until their next attempt.
 */
export class Renewer {
  readonly #backend: LeaseBackend;
  readonly #clock: Clock;
  readonly #time: ElapsedTime;
  readonly #schedules = new Map<Renewable, Schedule>();
  #timer: Timer | undefined;
  #timerAtMs = Infinity;

  constructor(options: RenewerOptions) {
    this.#backend = options.backend;
    this.#clock = options.clock;
    this.#time = options.time;
  }

  /** `sentAtMs` is when the last enter or renewal was sent. Does nothing for an entry that was added already. */
  add(item: Renewable, sentAtMs: number): void {
    if (this.#schedules.has(item)) return;
    const dueAtMs = item.isAutomatic ? sentAtMs + item.ttlMs * dueShare : Infinity;
    this.#schedules.set(item, { dueAtMs, inFlight: undefined });
    this.#arm(Math.min(dueAtMs, item.checkDeadlineAtMs));
  }

  /** The outcome of a renewal in flight is ignored from now on. */
  remove(item: Renewable): void {
    this.#schedules.delete(item);
    if (this.#schedules.size > 0) return;
    this.#timer?.cancel();
    this.#timerAtMs = Infinity;
  }

  /** Adds an entry that holds. If it was added while it waited, applies its `checkDeadlineAtMs` and `isAutomatic`. */
  hold(item: Renewable, sentAtMs: number): void {
    const schedule = this.#schedules.get(item);
    if (schedule === undefined) return this.add(item, sentAtMs);
    if (!item.isAutomatic) schedule.dueAtMs = Infinity;
    this.#arm(item.checkDeadlineAtMs);
  }

  /** The renewal in flight, or a new one. */
  async renewNow(item: Renewable): Promise<RenewalOutcome> {
    const schedule = this.#schedules.get(item);
    if (schedule === undefined) return { kind: 'gone' };
    if (schedule.inFlight === undefined) this.#send([item]);
    return await schedule.inFlight!;
  }

  /** Resolves when no renewal of the entry is in flight. Never rejects. */
  async settled(item: Renewable): Promise<void> {
    await this.#schedules.get(item)?.inFlight;
  }

  #arm(atMs: number): void {
    if (atMs >= this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#clock.setTimer(atMs - this.#time.readMs(), () => this.#tick());
  }

  #tick(): void {
    this.#timerAtMs = Infinity;
    const nowMs = this.#time.readMs();
    // Deadlines first: a lost hold is not renewed any more.
    for (const item of this.#schedules.keys()) if (item.checkDeadlineAtMs <= nowMs) item.checkDeadline();
    const soon: Renewable[] = [];
    let isAnyDue = false;
    for (const [item, { dueAtMs, inFlight }] of this.#schedules) {
      if (inFlight !== undefined || dueAtMs - item.ttlMs * earlyShare > nowMs) continue;
      isAnyDue ||= dueAtMs <= nowMs;
      soon.push(item);
    }
    if (isAnyDue) for (const batch of batches(soon)) this.#send(batch);
    this.#armNext();
  }

  #armNext(): void {
    let nextMs = Infinity;
    for (const [item, { dueAtMs, inFlight }] of this.#schedules) {
      nextMs = Math.min(nextMs, item.checkDeadlineAtMs, inFlight === undefined ? dueAtMs : Infinity);
    }
    this.#arm(nextMs);
  }

  #send(batch: readonly Renewable[]): void {
    const outcomes = this.#call(batch);
    for (const [at, item] of batch.entries()) {
      const schedule = this.#schedules.get(item)!;
      schedule.inFlight = outcomes.then((all) => all[at]!);
      item.sent();
    }
  }

  async #call(batch: readonly Renewable[]): Promise<readonly RenewalOutcome[]> {
    const sentAtMs = this.#time.readMs();
    const schedules = batch.map((item) => this.#schedules.get(item));
    const outcomes = await this.#ask(batch);
    for (const [at, item] of batch.entries()) {
      const schedule = schedules[at];
      // It was removed meanwhile, and may have been added again.
      if (schedule !== undefined && this.#schedules.get(item) === schedule) {
        this.#tell(item, schedule, sentAtMs, outcomes[at]!);
      }
    }
    this.#armNext();
    return outcomes;
  }

  #tell(item: Renewable, schedule: Schedule, sentAtMs: number, outcome: RenewalOutcome): void {
    schedule.inFlight = undefined;
    if (outcome.kind === 'renewed') {
      if (item.isAutomatic) schedule.dueAtMs = sentAtMs + item.ttlMs * dueShare;
      item.renewed(sentAtMs);
    } else if (outcome.kind === 'gone') {
      this.remove(item);
      item.gone();
    } else {
      const retryMs = Math.min(retryMaxMs, Math.max(retryMinMs, item.ttlMs * retryShare));
      if (item.isAutomatic) schedule.dueAtMs = this.#time.readMs() + retryMs;
      item.failed(outcome.error);
    }
  }

  async #ask(batch: readonly Renewable[]): Promise<readonly RenewalOutcome[]> {
    const shortestMs = Math.min(...batch.map(({ ttlMs }) => ttlMs));
    const limitMs = Math.max(attemptMinMs, shortestMs * attemptShare);
    const renewals = batch.map(({ key, ttlMs }) => ({ ...key, ttlMs }));
    try {
      const options = { clock: this.#clock, backend: this.#backend.kind, limitMs };
      const flags = await withTimeLimit(options, (signal) => this.#backend.renew(renewals, signal));
      if (flags.length !== batch.length) {
        const message = `${flags.length} answers to ${batch.length} renewals`;
        throw new BackendError(this.#backend.kind, 'unavailable', message);
      }
      return flags.map((isThere) => ({ kind: isThere ? 'renewed' : 'gone' }));
    } catch (error) {
      // The backend may have refused because of one entry, so halving the batch saves the others.
      if (batch.length > 1 && error instanceof BackendError && error.backendCode === 'refused') {
        const half = Math.ceil(batch.length / 2);
        return (await Promise.all([this.#ask(batch.slice(0, half)), this.#ask(batch.slice(half))])).flat();
      }
      return batch.map(() => ({ kind: 'failed', error }));
    }
  }
}

function batches(items: readonly Renewable[]): readonly (readonly Renewable[])[] {
  const found: Renewable[][] = [];
  for (const item of items.toSorted((one, other) => one.ttlMs - other.ttlMs)) {
    const last = found.at(-1);
    const fits = last !== undefined && last.length < renewalsPerCallMax;
    if (fits && item.ttlMs <= last[0]!.ttlMs * ttlSpreadMax) last.push(item);
    else found.push([item]);
  }
  return found;
}
