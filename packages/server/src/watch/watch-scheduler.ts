import { type History, type WatchBatch, WatchHub } from '@tenure/core';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import type { ScheduledStream, StreamWatch } from './stream-watch.ts';
import { TurnQueue } from '@tenure/grpc-server';
import type { WatchLimits } from './watch-limits.ts';
import { type WatchAccess, WatchPermissions } from './watch-permissions.ts';
import type { WatchReplyEncoder } from './watch-reply-encoder.ts';

export interface WatchSchedulerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly history: History;
  readonly access: WatchAccess;
  readonly encoder: WatchReplyEncoder;
  readonly limits: WatchLimits;
  readonly progressNotifyIntervalMs: number;
}

/**
 * The state shared by all Watch calls of a server, and their scheduling.
 *
 * New events are delivered first, then lagging watches read, one batch of one stream at a time. Work is done in slices
 * of `sliceMs`, between which the event loop reads sockets and runs timers. A stream whose client does not read is
 * skipped, and costs nothing until it does.
 */
export class WatchScheduler {
  readonly clock: Clock;
  readonly random: Random;
  readonly hub: WatchHub<StreamWatch>;
  readonly history: History;
  readonly encoder: WatchReplyEncoder;
  readonly limits: WatchLimits;
  readonly progressNotifyIntervalMs: number;
  readonly streams = new Set<ScheduledStream>();
  readonly permissions: WatchPermissions;
  /** Total size of the keys and range ends of all watches. */
  watchedKeyBytes = 0;
  /** Streams with lagging watches and room to send; the first one is next. */
  readonly #queue = new TurnQueue<ScheduledStream>();
  /** Streams with a progress request while events were yet to be delivered. */
  readonly #awaitingSettled = new Set<ScheduledStream>();
  #batches: readonly WatchBatch<StreamWatch>[] = [];
  #nextBatch = 0;
  #isTurnDue = false;
  #isStopped = false;
  #eventsSent = 0;

  constructor(options: WatchSchedulerOptions) {
    this.clock = options.clock;
    this.random = options.random;
    this.hub = new WatchHub(options.history);
    this.history = options.history;
    this.encoder = options.encoder;
    this.limits = options.limits;
    this.progressNotifyIntervalMs = options.progressNotifyIntervalMs;
    this.permissions = new WatchPermissions({
      access: options.access,
      clock: options.clock,
      sliceMs: options.limits.sliceMs,
      streams: this.streams,
      onRechecked: () => this.#finishSlice(),
    });
  }

  get eventsSent(): number {
    return this.#eventsSent;
  }

  countSent(events: number): void {
    this.#eventsSent += events;
  }

  /** Every event was handed to the streams of the synced watches. */
  get settled(): boolean {
    return this.#nextBatch === this.#batches.length && this.hub.revision === this.history.currentRevision;
  }

  /** Every open watch has been sent everything, and may be told of it. */
  get canTellProgress(): boolean {
    return this.settled && !this.permissions.isRechecking;
  }

  /** Calls the stream's tryProgress once every event is delivered, and every watch is checked. */
  onSettled(stream: ScheduledStream): void {
    this.#awaitingSettled.add(stream);
  }

  /** The stream has a lagging watch, and room to send. */
  enqueue(stream: ScheduledStream): void {
    this.#queue.push(stream);
    this.#schedule();
  }

  leave(stream: ScheduledStream): void {
    this.streams.delete(stream);
    this.#queue.delete(stream);
    this.#awaitingSettled.delete(stream);
  }

  /**
   * Delivers new events, at once as far as the slice allows. The slice began at `beganMs`, with the work that produced
   * the events: when that took the whole slice, all events wait for a separate turn.
   */
  advance(beganMs: number): void {
    this.permissions.recheck(beganMs);
    // Undelivered batches mean more than one slice of work; its turn is scheduled, and these events would only add to
    // it.
    if (this.#nextBatch < this.#batches.length) return;
    const untilMs = beganMs + this.limits.sliceMs;
    if (this.clock.monotonicMs() < untilMs) this.#deliver(untilMs);
    this.#finishSlice();
  }

  stop(): void {
    this.#isStopped = true;
    this.permissions.stop();
  }

  #schedule(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    this.clock.soon(() => {
      this.#isTurnDue = false;
      if (this.#isStopped) return;
      this.permissions.refresh();
      const untilMs = this.clock.monotonicMs() + this.limits.sliceMs;
      this.#deliver(untilMs);
      // At least one batch, so that lagging watches make progress with any number of new events.
      let pulled: boolean;
      do pulled = this.#pullOne();
      while (pulled && this.clock.monotonicMs() < untilMs);
      this.#finishSlice();
    });
  }

  #deliver(untilMs: number): void {
    const { maxEventsPerStep, maxResponseBytes } = this.limits;
    do {
      if (this.#nextBatch === this.#batches.length) {
        if (this.hub.revision === this.history.currentRevision) return;
        const { batches, overtaken } = this.hub.advance({ maxEvents: maxEventsPerStep, maxBytes: maxResponseBytes });
        this.#batches = batches;
        this.#nextBatch = 0;
        for (const watcher of overtaken) watcher.owner.stream.lag(watcher);
        // Finding the watchers of 50,000 events of one revision takes as long as encoding them: these are two steps.
        if ((batches[0]?.events.length ?? 0) > maxEventsPerStep) continue;
      }
      const batch = this.#batches[this.#nextBatch];
      if (batch === undefined) continue;
      this.#nextBatch += 1;
      if (batch.watcher.state === 'synced') batch.watcher.owner.stream.deliver(batch);
    } while (this.clock.monotonicMs() < untilMs);
  }

  /** False when no stream has anything to pull. */
  #pullOne(): boolean {
    let stream = this.#queue.shift();
    while (stream !== undefined && !stream.canPull) stream = this.#queue.shift();
    if (stream === undefined) return false;
    stream.pullOne();
    if (stream.canPull) this.#queue.push(stream);
    return true;
  }

  #finishSlice(): void {
    if (!this.settled) {
      this.#schedule();
      return;
    }
    this.#batches = [];
    this.#nextBatch = 0;
    const waiting = Array.from(this.#awaitingSettled);
    this.#awaitingSettled.clear();
    for (const stream of waiting) stream.tryProgress();
    if (this.#queue.size > 0) this.#schedule();
  }
}
