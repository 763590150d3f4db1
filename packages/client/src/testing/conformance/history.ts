import type { Claim, Entry, EntryKey, EnterOptions, LeaseBackend, Renewal } from '../../backend/lease-backend.ts';
import type { Signal } from '../../time/signal.ts';

/** A look at a line, between two moments: the answer is the state at some moment between them. */
export interface Look {
  readonly name: string;
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly entries: readonly Entry[];
}

/** What was done to an entry. `isDone` is undefined when nobody can tell. */
export interface Deed {
  readonly kind: 'renew' | 'leave' | 'update';
  readonly sentMs: number;
  /** Infinity when no answer came. */
  readonly answeredMs: number;
  readonly isDone: boolean | undefined;
  /** Of a renewal. */
  readonly ttlMs: number;
  /** Of an update. */
  readonly data: string;
}

/** All that is known of one claim. */
export interface Life {
  readonly claim: Claim;
  readonly sentMs: number;
  /** Infinity when no answer came. */
  readonly answeredMs: number;
  /** Undefined when it was not entered, or nobody can tell. */
  readonly ticket: bigint | undefined;
  readonly deeds: Deed[];
}

/** Calls backends and writes down what was asked and answered, and when. Times are of this process's one clock. */
export class History {
  readonly looks: Look[] = [];
  readonly lives: Life[] = [];
  readonly #byId = new Map<string, Life>();

  /** The key of the entry, or undefined when it was not entered. */
  async enter(backend: LeaseBackend, claim: Claim, options: EnterOptions): Promise<EntryKey | undefined> {
    const sentMs = performance.now();
    const life = { claim, sentMs, answeredMs: Infinity, ticket: undefined as bigint | undefined, deeds: [] };
    this.lives.push(life);
    this.#byId.set(claim.id, life);
    const { ticket, entries } = await backend.enter(claim, options);
    life.answeredMs = performance.now();
    life.ticket = ticket;
    this.looks.push({ name: claim.name, sentMs, answeredMs: life.answeredMs, entries });
    return ticket === undefined ? undefined : { name: claim.name, id: claim.id, ticket };
  }

  async list(backend: LeaseBackend, name: string, signal: Signal): Promise<readonly Entry[]> {
    const sentMs = performance.now();
    const entries = await backend.list(name, signal);
    this.looks.push({ name, sentMs, answeredMs: performance.now(), entries });
    return entries;
  }

  async renew(backend: LeaseBackend, renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const done = renewals.map(({ id, ttlMs }) => this.#begin(id, 'renew', { ttlMs, data: '' }));
    const flags = await backend.renew(renewals, signal);
    for (const [at, end] of done.entries()) end(flags[at]);
    return flags;
  }

  async leave(backend: LeaseBackend, key: EntryKey, signal: Signal): Promise<boolean> {
    const end = this.#begin(key.id, 'leave', { ttlMs: 0, data: '' });
    return end(await backend.leave(key, signal)) === true;
  }

  async update(backend: LeaseBackend, key: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const end = this.#begin(key.id, 'update', { ttlMs: 0, data });
    return end(await backend.update(key, data, signal)) === true;
  }

  #begin(id: string, kind: Deed['kind'], what: Pick<Deed, 'ttlMs' | 'data'>) {
    const life = this.#byId.get(id);
    if (life === undefined) throw new Error(`${id} never entered`);
    const at = life.deeds.length;
    const deed: Deed = { kind, sentMs: performance.now(), answeredMs: Infinity, isDone: undefined, ...what };
    life.deeds.push(deed);
    return (isDone: boolean | undefined): boolean | undefined => {
      life.deeds[at] = { ...deed, answeredMs: performance.now(), isDone };
      return isDone;
    };
  }
}
