import type { KvEvent } from '@tenure/core';
import type { KeyOracle } from '../keys/key-oracle.ts';
import { textOfKeyValue } from '../keys/key-reply.ts';
import { isWatched, type WatchReply, type WatchRequest } from './watch-observation.ts';

/** One watch over all its streams: what it has seen, and what the log says that it must see. */
export class WatchObserver {
  readonly request: WatchRequest;
  readonly #oracle: KeyOracle;
  readonly #violated: (rule: string, what: string) => void;
  /** All events before this revision have been seen; undefined until the first creation. */
  #next: number | undefined;
  /** No earlier revision may come on this stream. */
  #start = 0;
  #lastEvent = 0;
  #lastProgress = 0;
  #isOpen = false;
  #isResumed = false;
  #isSlow = false;
  #isBroken = false;
  #fragments: KvEvent[] = [];

  constructor(request: WatchRequest, oracle: KeyOracle, violated: (rule: string, what: string) => void) {
    this.request = request;
    this.#oracle = oracle;
    this.#violated = violated;
  }

  /** The revision that a new stream asks for, by the last event; undefined to use the first request's. */
  get resumeRevision(): number | undefined {
    return this.#next === undefined ? undefined : Math.max(this.#lastEvent + 1, this.#start);
  }

  /** The same, by the newest header: it lies behind revisions without events of this watch. */
  get bookmark(): number | undefined {
    return this.#next;
  }

  /** Whether its reader has stopped reading for a while since the watch was created. */
  get isSlow(): boolean {
    return this.#isSlow;
  }

  /** The reader of this watch has stopped reading for a while. */
  slowed(): void {
    this.#isSlow = true;
  }

  /** The stream is over: events that came as an incomplete series of fragments are forgotten. */
  ended(): void {
    this.#isOpen = false;
    this.#fragments = [];
  }

  /** The server has accepted the watch, which asked for `startRevision`. */
  created(startRevision: number, { revision, isCanceled }: WatchReply): void {
    if (isCanceled) {
      this.#report('W6', `a watch from ${startRevision} was refused`);
      return;
    }
    this.#isOpen = true;
    this.#isResumed = this.#next !== undefined;
    this.#isSlow = false;
    this.#start = startRevision === 0 ? revision + 1 : startRevision;
    // A watch that asks for a revision again may get it again.
    this.#lastEvent = Math.min(this.#lastEvent, this.#start - 1);
    this.#lastProgress = Math.min(this.#lastProgress, this.#start - 1);
    this.#next = this.#start;
    this.#durable(revision);
  }

  /** The server has ended the watch for a compaction. Returns the revision from which it can start again. */
  compacted({ compactRevision }: WatchReply): number {
    this.ended();
    const next = this.#next ?? 0;
    if (compactRevision === 0) this.#report('W10', 'canceled without a compact revision');
    else if (compactRevision > this.#oracle.compactRevision) {
      this.#report('W10', `canceled by a compaction at ${compactRevision}, which is not durable`);
    } else if (compactRevision <= next) {
      this.#report('W10', `canceled by a compaction at ${compactRevision} though it had seen all before ${next}`);
    }
    this.#next = Math.max(next, compactRevision);
    return this.#next;
  }

  progress({ revision }: WatchReply): void {
    // Progress of the whole stream may have been sent before the server read the request for this watch.
    if (!this.#isOpen) return;
    if (this.#fragments.length > 0) this.#report('W4', `progress at ${revision} within a series of fragments`);
    if (!this.#durable(revision)) return;
    if (revision < this.#start - 1) {
      this.#report('W11', `progress at ${revision} of a watch from ${this.#start}`);
    }
    if (revision < this.#lastEvent || revision < this.#lastProgress) {
      this.#report('W5', `progress at ${revision} after ${Math.max(this.#lastEvent, this.#lastProgress)}`);
    }
    this.#checkMissing([], revision, 'W5');
    this.#lastProgress = Math.max(this.#lastProgress, revision);
    this.#next = Math.max(this.#next ?? 0, revision + 1);
  }

  events({ revision, events, isFragment }: WatchReply): void {
    if (this.#fragments.length === 0) this.#checkBeginning(events);
    this.#fragments.push(...events);
    if (isFragment) return;
    const all = this.#fragments;
    this.#fragments = [];
    if (!this.#durable(Math.max(revision, all.at(-1)?.kv.modRevision ?? 0))) return;
    this.#checkOrder(all);
    if (revision < (all.at(-1)?.kv.modRevision ?? 0)) this.#report('W5', `events after the header's ${revision}`);
    this.#checkMissing(all, revision, undefined);
    this.#checkContents(all);
    this.#lastEvent = Math.max(this.#lastEvent, all.at(-1)?.kv.modRevision ?? 0);
    this.#next = Math.max(this.#next ?? 0, revision + 1);
    this.#isResumed = false;
  }

  /** Everything up to `revision` must have come by now. */
  finish(revision: number): void {
    if (!this.#isOpen) this.#report('W6', 'no server has accepted it again');
    this.#checkMissing([], revision, undefined);
  }

  #checkBeginning(events: readonly KvEvent[]): void {
    const first = events[0]?.kv.modRevision ?? 0;
    if (first < this.#start) this.#report(this.#isResumed ? 'W3' : 'W11', `${first} came from ${this.#start} on`);
    else if (first === this.#lastEvent) this.#report('W4', `revision ${first} was split`);
    else if (first <= this.#lastProgress) this.#report('W5', `${first} came after progress at ${this.#lastProgress}`);
    else if (first < this.#lastEvent) this.#report('W2', `revision ${first} came after ${this.#lastEvent}`);
    else if (first < (this.#next ?? 0)) this.#report('W5', `revision ${first} came after a header of a later one`);
  }

  #checkOrder(events: readonly KvEvent[]): void {
    const seen = new Set<string>();
    let last = 0;
    for (const event of events) {
      const { key, modRevision } = event.kv;
      const name = `${modRevision} ${event.type} ${key}`;
      if (!isWatched(this.request, event)) this.#report('W1', `${name} does not belong to it`);
      if (modRevision < last) this.#report('W2', `${name} came after revision ${last}`);
      // A transaction may change a key twice: it deletes the key and puts it.
      if (seen.has(name)) this.#report('W3', `${name} came twice`);
      seen.add(name);
      last = modRevision;
    }
  }

  /** Everything that the log has up to `last` came, in these events or before. */
  #checkMissing(events: readonly KvEvent[], last: number, rule: string | undefined): void {
    if (this.#isBroken || this.#next === undefined) return;
    const told = new Set(events.map(({ type, kv }) => `${kv.modRevision} ${type} ${kv.key}`));
    const ending = events.at(-1)?.kv.modRevision;
    for (let revision = this.#next; revision <= last; revision += 1) {
      for (const event of this.#oracle.eventsAt(revision)) {
        const name = `${revision} ${event.type} ${event.kv.key}`;
        if (told.has(name) || !isWatched(this.request, event)) continue;
        const isSplit = revision === ending || events.some(({ kv }) => kv.modRevision === revision);
        this.#report(
          isSplit ? 'W4' : (rule ?? this.#ruleOfGap(revision)),
          `${name} is missing in what came by ${last}`,
        );
        return;
      }
    }
  }

  #ruleOfGap(revision: number): string {
    if (revision < this.#oracle.compactRevision) return 'W10';
    if (this.#isSlow) return 'W9';
    if (this.#isResumed) return 'W6';
    return this.#oracle.isEndOfLease(revision) ? 'L4' : 'W7';
  }

  #checkContents(events: readonly KvEvent[]): void {
    for (const { kv, type, prevKv } of events) {
      const held = this.#oracle
        .eventsAt(kv.modRevision)
        .filter((event) => event.kv.key === kv.key && event.type === type);
      const what = `revision ${kv.modRevision} ${type} ${kv.key}`;
      const [expected] = held;
      if (expected === undefined) {
        const rule = this.#oracle.isEndOfLease(kv.modRevision) ? 'L4' : 'W7';
        this.#report(rule, `${what} is not in the log`);
        return;
      }
      this.#same('W8', what, kv, expected.kv);
      const isLost = prevKv === undefined && kv.modRevision <= this.#oracle.compactRevision;
      if (this.request.prevKv) {
        if (!isLost) this.#same('W8', `prev_kv of ${what}`, prevKv, expected.prevKv);
      } else if (prevKv !== undefined) this.#report('W8', `${what} has a prev_kv that was not asked for`);
    }
    this.#checkOrderWithin(events);
  }

  /** The changes of one revision come in the order of the log: the keys of a lease are sorted. */
  #checkOrderWithin(events: readonly KvEvent[]): void {
    const first = events[0]?.kv.modRevision ?? 0;
    const last = events.at(-1)?.kv.modRevision ?? 0;
    if (this.#isBroken || events.length === last - first + 1) return;
    for (let revision = first; revision <= last; revision += 1) {
      const told = events.filter(({ kv }) => kv.modRevision === revision).map(({ type, kv }) => `${type} ${kv.key}`);
      if (told.length < 2) continue;
      const held = this.#oracle.eventsAt(revision).filter((event) => isWatched(this.request, event));
      const expected = held.map(({ type, kv }) => `${type} ${kv.key}`).join(', ');
      if (told.join(', ') === expected) continue;
      this.#report(this.#oracle.isEndOfLease(revision) ? 'L4' : 'W2', `${told.join(', ')} instead of ${expected}`);
    }
  }

  #same(rule: string, what: string, given: KvEvent['prevKv'], expected: KvEvent['prevKv']): void {
    const [one, other] = [textOfKeyValue(given), textOfKeyValue(expected)];
    if (one !== other) this.#report(rule, `${what} is ${one}, by the log ${other}`);
  }

  #durable(revision: number): boolean {
    if (revision <= this.#oracle.currentRevision) return true;
    this.#report('A4', `revision ${revision} is not durable`);
    return false;
  }

  /** Once: what follows a violation says nothing. */
  #report(rule: string, what: string): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#violated(rule, what);
  }
}
