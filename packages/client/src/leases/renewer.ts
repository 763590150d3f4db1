import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock, Timer } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { attempt } from './attempt.ts';

/** An entry is renewed when a third of its life has passed, so that several attempts fit before its end. */
const dueShare = 1 / 3;
/** Less than what lies between two renewals: an attempt that gets no answer leaves time for others. */
const attemptShare = 1 / 6;
const attemptMinMs = 50;
/** After a failure the next attempt comes soon, whatever the length of life. */
const retryShare = 1 / 30;
const retryMinMs = 10;
const retryMaxMs = 1_000;
/** What becomes due so soon goes along with what is due now, so that many entries end up in few calls. */
const earlyShare = 1 / 12;
const renewalsPerCallMax = 500;
/** Entries with lives so different go in calls of their own: the shortest one sets the limit of its call. */
const ttlSpreadMax = 4;

/** What the renewer renews: one entry. It is told what came of each attempt, always in the order of sending. */
export interface Renewable {
  readonly entry: EntryKey;
  readonly ttlMs: number;
  /** Whether it is renewed without being asked. */
  readonly isAutomatic: boolean;
  /** When `look` is wanted, in `ElapsedTime`; Infinity for never. */
  readonly lookAtMs: number;
  look(): void;
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
 * Renews all entries of one manager, with one timer and as few calls as possible. Each entry has one renewal under way
 * at most. A call that fails concerns only the entries that were in it, and only until their next attempt.
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

  /** `sentAtMs` is when the entry was last made or renewed. Nothing changes for one that is here already. */
  add(item: Renewable, sentAtMs: number): void {
    if (this.#schedules.has(item)) return;
    const dueAtMs = item.isAutomatic ? sentAtMs + item.ttlMs * dueShare : Infinity;
    this.#schedules.set(item, { dueAtMs, inFlight: undefined });
    this.#arm(Math.min(dueAtMs, item.lookAtMs));
  }

  /** What is under way for it counts for nothing from now on. */
  remove(item: Renewable): void {
    this.#schedules.delete(item);
    if (this.#schedules.size > 0) return;
    this.#timer?.cancel();
    this.#timerAtMs = Infinity;
  }

  /** The same, or it is here already, and `lookAtMs` and `isAutomatic` have become what they will be. */
  hold(item: Renewable, sentAtMs: number): void {
    const schedule = this.#schedules.get(item);
    if (schedule === undefined) return this.add(item, sentAtMs);
    if (!item.isAutomatic) schedule.dueAtMs = Infinity;
    this.#arm(item.lookAtMs);
  }

  /** The renewal that is under way, or a new one. */
  async renewNow(item: Renewable): Promise<RenewalOutcome> {
    const schedule = this.#schedules.get(item);
    if (schedule === undefined) return { kind: 'gone' };
    if (schedule.inFlight === undefined) this.#send([item]);
    return await schedule.inFlight!;
  }

  /** Resolves when nothing is under way for the entry. Never rejects. */
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
    // Deadlines first: what has been lost is not renewed any more.
    for (const item of this.#schedules.keys()) if (item.lookAtMs <= nowMs) item.look();
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
      nextMs = Math.min(nextMs, item.lookAtMs, inFlight === undefined ? dueAtMs : Infinity);
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
    const renewals = batch.map(({ entry, ttlMs }) => ({ ...entry, ttlMs }));
    try {
      const options = { clock: this.#clock, backend: this.#backend.kind, limitMs };
      const flags = await attempt(options, (signal) => this.#backend.renew(renewals, signal));
      if (flags.length !== batch.length) {
        const message = `${flags.length} answers to ${batch.length} renewals`;
        throw new BackendError(this.#backend.kind, 'unavailable', message);
      }
      return flags.map((isThere) => ({ kind: isThere ? 'renewed' : 'gone' }));
    } catch (error) {
      // It took offence at one of them, which is no reason to lose the others.
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
