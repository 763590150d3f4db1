import { type Pulled, type WatchBatch, type WatchRange, watchRange } from '@tenure/core';
import { errorCatalogue, etcdserverpb } from '@tenure/protocol';
import { DecodeError, decodeWatchRequest, type WatchCreateRequest, withNames } from '@tenure/codec';
import { every } from '../time/every.ts';
import { type GrpcStatus, TurnQueue, unreadableMessage } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';
import type { ScheduledStream, StreamWatch, StreamWatcher } from './stream-watch.ts';
import { permissionLost } from './watch-permissions.ts';
import type { WatchScheduler } from './watch-scheduler.ts';

/** What an empty key means. */
const smallestKey = '\0';

/** etcd's texts for these; clients compare them. */
const emptyRange = 'mvcc: watcher range is empty';
const duplicateId = 'mvcc: duplicate watch ID provided on the WatchStream';

/**
 * One Watch call: its watches, by id, and flow control towards its client.
 *
 * The only waiting state is cursors. While the client does not read, watches with new events become lagging; when it
 * reads again, they read from the history, one batch of one watch at a time, round-robin.
 */
export class WatchStream implements ScheduledStream {
  readonly #call: DuplexCall;
  readonly #scheduler: WatchScheduler;
  readonly #watchers = new Map<bigint, StreamWatcher>();
  /** The lagging watchers, in the order in which they read. */
  readonly #lagging = new TurnQueue<StreamWatcher>();
  readonly #notified = new Set<StreamWatcher>();
  /** Ids of watches ended by compaction: in use until the client cancels them, as with etcd. */
  readonly #endedIds = new Set<bigint>();
  /** Watches whose start revision was in the future at the last check. */
  readonly #future = new Set<StreamWatcher>();
  #nextId = 0n;
  /** Without any, the next id is free: ids are chosen in ascending order. */
  #hasIdsOfClient = false;
  #writable = true;
  #unsentReplies = 0;
  /** The client has requested progress and has no response yet. */
  #progressAsked = false;
  #cancelProgress: (() => void) | undefined;

  constructor(call: DuplexCall, scheduler: WatchScheduler) {
    this.#call = call;
    this.#scheduler = scheduler;
    call.onMessage = (message) => this.#receive(message);
    call.onDrain = () => this.#drained();
    call.onClose = () => this.#closed();
  }

  get watchers(): Iterable<StreamWatcher> {
    return this.#watchers.values();
  }

  /** Whether `pullOne` would do something. */
  get canPull(): boolean {
    return this.#writable && this.#lagging.size > 0;
  }

  /** The oldest revision that the watches of this stream have yet to read; undefined if none lags. */
  get oldestWanted(): number | undefined {
    let oldest: number | undefined;
    for (const { nextRevision } of this.#lagging) oldest = Math.min(oldest ?? nextRevision, nextRevision);
    return oldest;
  }

  end(status: GrpcStatus): void {
    this.#call.end(status);
  }

  /** Sends new events to one of the watches, or lets it lag. */
  deliver(batch: WatchBatch<StreamWatch>): void {
    const { watcher, events } = batch;
    if (!this.#scheduler.permissions.admits(watcher)) return;
    if (this.#writable) {
      this.#sendEvents(watcher, events, this.#scheduler.hub.revision);
      return;
    }
    this.#scheduler.hub.fallBehind(batch);
    this.lag(watcher);
  }

  /** Records that one of the watches has become lagging. */
  lag(watcher: StreamWatcher): void {
    this.#lagging.push(watcher);
    if (this.#writable) this.#scheduler.enqueue(this);
  }

  /** Lets the next lagging watch read one batch of the history. */
  pullOne(): void {
    const { hub, limits, permissions } = this.#scheduler;
    const watcher = this.#lagging.shift();
    if (watcher === undefined || !permissions.admits(watcher)) return;
    const pulled: Pulled = hub.pull(watcher, { maxEvents: limits.maxEventsPerStep, maxBytes: limits.maxResponseBytes });
    if (pulled.kind === 'compacted') this.#endCompacted(watcher, pulled.compactRevision);
    else {
      const caughtUp = watcher.state === 'synced';
      if (!caughtUp) this.#lagging.push(watcher);
      if (pulled.events.length > 0) {
        this.#sendEvents(watcher, pulled.events, caughtUp ? hub.revision : watcher.nextRevision - 1);
      }
    }
    this.tryProgress();
  }

  /** Its id is free again: a client that cancels it meanwhile has its one reply already. */
  deny(watcher: StreamWatcher): void {
    const { encoder, history } = this.#scheduler;
    this.#forget(watcher);
    this.#send(encoder.ended(history.currentRevision, watcher.owner.id, permissionLost));
    this.tryProgress();
  }

  /**
   * Answers a progress request if all watches of this stream have been sent everything. The request is kept until that
   * is the case, where etcd drops it and the client asks again; it is dropped, as in etcd, when there is no watch, one
   * that has ended and is not cancelled, or one that starts in the future. It needs no permission of its own: a stream
   * has only watches whose users may read their keys.
   */
  tryProgress(): void {
    if (!this.#progressAsked || !this.#writable || this.#lagging.size > 0) return;
    const { permissions, encoder, hub } = this.#scheduler;
    permissions.refresh();
    if (!this.#scheduler.canTellProgress) {
      this.#scheduler.onSettled(this);
      return;
    }
    this.#progressAsked = false;
    if (this.#watchers.size === 0 || this.#endedIds.size > 0 || this.#hasFutureWatch()) return;
    this.#send(encoder.progressOfAll(hub.revision));
  }

  #receive(message: Buffer): void {
    try {
      const request = decodeWatchRequest(message);
      if (request.kind === 'create') this.#create(request.create);
      else if (request.kind === 'cancel') this.#cancel(request.watchId);
      else if (request.kind === 'progress') this.#requestProgress();
      // Any other request is from a later version; etcd ignores it too.
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#call.end(unreadableMessage(withNames(error, etcdserverpb.WatchRequestSchema, message).message));
    }
  }

  #create(request: WatchCreateRequest): void {
    const { hub, history, encoder, permissions } = this.#scheduler;
    const range = watchRange(request.key, request.rangeEnd);
    const isChosenHere = request.watchId === 0n;
    const id = isChosenHere ? this.#freeId() : request.watchId;
    const refusal = this.#refusal(request, range);
    if (range === undefined || refusal !== undefined) {
      this.#reply(encoder.refused(history.currentRevision, refusal ?? emptyRange));
      return;
    }
    if (isChosenHere) this.#nextId += 1n;
    else this.#hasIdsOfClient = true;
    const { prevKv, fragment, startRevision, noPut, noDelete } = request;
    const watcher = hub.watch(
      {
        stream: this,
        id,
        prevKv,
        fragment,
        startRevision,
        user: this.#call.requester?.user ?? '',
        checkedBy: permissions.version,
        quiet: true,
      },
      { range, prevKv, startRevision, noPut, noDelete },
    );
    this.#watchers.set(id, watcher);
    if (this.#startsInFuture(watcher)) this.#future.add(watcher);
    this.#scheduler.watchedKeyBytes += keyBytes(range);
    this.#reply(encoder.created(history.currentRevision, id));
    if (request.progressNotify) this.#notifyProgress(watcher);
    if (watcher.state === 'lagging') this.lag(watcher);
  }

  /** Why the watch cannot be created, in etcd's order of checks. */
  #refusal(request: WatchCreateRequest, range: WatchRange | undefined): string | undefined {
    const { hub, limits, permissions, watchedKeyBytes } = this.#scheduler;
    if (request.startRevision < 0) return errorCatalogue.Compacted.text;
    // By the range as requested: only there is '' one key, and '\0' no end.
    const asked = { key: request.key || smallestKey, rangeEnd: request.rangeEnd };
    const denied = permissions.refusalOf(this.#call.requester, asked);
    if (denied !== undefined) return denied;
    if (range === undefined) return emptyRange;
    if (request.watchId !== 0n && this.#isTaken(request.watchId)) return duplicateId;
    if (this.#watchers.size + this.#endedIds.size >= limits.maxWatchersPerStream) {
      return `tenure: this stream has ${limits.maxWatchersPerStream} watches, which is the limit; open another stream`;
    }
    if (hub.watcherCount >= limits.maxWatchersPerServer) {
      return `tenure: this server has ${limits.maxWatchersPerServer} watches, which is the limit; use another server`;
    }
    if (watchedKeyBytes + keyBytes(range) > limits.maxWatchedKeyBytes) {
      return `tenure: the keys of this server's watches have ${watchedKeyBytes} bytes, which is near the limit`;
    }
    return undefined;
  }

  /** Ids that were found in use are not checked again. */
  #freeId(): bigint {
    while (this.#hasIdsOfClient && this.#isTaken(this.#nextId)) this.#nextId += 1n;
    return this.#nextId;
  }

  #isTaken(id: bigint): boolean {
    return this.#watchers.has(id) || this.#endedIds.has(id);
  }

  #cancel(id: bigint): void {
    const watcher = this.#watchers.get(id);
    if (watcher !== undefined) this.#forget(watcher);
    else if (!this.#endedIds.delete(id)) return;
    this.#reply(this.#scheduler.encoder.canceled(this.#scheduler.history.currentRevision, id));
    this.tryProgress();
  }

  #endCompacted(watcher: StreamWatcher, compactRevision: number): void {
    const { id } = watcher.owner;
    this.#forget(watcher);
    this.#endedIds.add(id);
    this.#send(this.#scheduler.encoder.compacted(this.#scheduler.history.currentRevision, id, compactRevision));
  }

  #forget(watcher: StreamWatcher): void {
    this.#release(watcher);
    this.#watchers.delete(watcher.owner.id);
    this.#lagging.delete(watcher);
    this.#notified.delete(watcher);
    this.#future.delete(watcher);
  }

  #release(watcher: StreamWatcher): void {
    this.#scheduler.hub.cancel(watcher);
    this.#scheduler.watchedKeyBytes -= keyBytes(watcher.range);
  }

  /** Requests that arrive while one is unanswered are answered together. */
  #requestProgress(): void {
    this.#progressAsked = true;
    this.tryProgress();
  }

  /** A client that received an earlier revision would resume from there, before its start revision. */
  #startsInFuture({ owner }: StreamWatcher): boolean {
    return owner.startRevision > this.#scheduler.hub.revision;
  }

  #hasFutureWatch(): boolean {
    for (const watcher of this.#future) {
      if (this.#startsInFuture(watcher)) return true;
      this.#future.delete(watcher);
    }
    return false;
  }

  #notifyProgress(watcher: StreamWatcher): void {
    this.#notified.add(watcher);
    if (this.#cancelProgress !== undefined) return;
    const { clock, random, progressNotifyIntervalMs: intervalMs } = this.#scheduler;
    // Streams opened together, for example after a restart, should not all be notified at the same moment.
    const jitterMs = random.fraction() * (intervalMs / 10);
    this.#cancelProgress = every(clock, intervalMs + jitterMs, () => this.#tellProgress());
  }

  /** A watch that lags, starts in the future, or was sent events in the interval, is skipped until the next one. */
  #tellProgress(): void {
    const { hub, encoder, settled, permissions } = this.#scheduler;
    permissions.refresh();
    for (const watcher of this.#notified) {
      const watch = watcher.owner;
      const isSynced = watcher.state === 'synced' && !this.#startsInFuture(watcher);
      if (watch.quiet && settled && this.#writable && isSynced && permissions.admits(watcher)) {
        this.#send(encoder.progress(hub.revision, watch.id));
      }
      watch.quiet = true;
    }
  }

  #sendEvents(watcher: StreamWatcher, events: WatchBatch<StreamWatch>['events'], revision: number): void {
    const watch = watcher.owner;
    watch.quiet = false;
    this.#scheduler.countSent(events.length);
    for (const reply of this.#scheduler.encoder.events(revision, watch, events)) this.#send(reply);
  }

  /** A response to a request. Too many unread ones stop the reading of requests. */
  #reply(framed: Buffer): void {
    this.#send(framed);
    if (this.#writable) return;
    this.#unsentReplies += 1;
    if (this.#unsentReplies === this.#scheduler.limits.maxUnsentReplies) this.#call.pause();
  }

  #send(framed: Buffer): void {
    if (!this.#call.send(framed)) this.#writable = false;
  }

  #drained(): void {
    this.#writable = true;
    if (this.#unsentReplies >= this.#scheduler.limits.maxUnsentReplies) this.#call.resume();
    this.#unsentReplies = 0;
    if (this.#lagging.size > 0) this.#scheduler.enqueue(this);
    this.tryProgress();
  }

  #closed(): void {
    this.#cancelProgress?.();
    for (const watcher of this.#watchers.values()) this.#release(watcher);
    this.#watchers.clear();
    this.#lagging.clear();
    this.#notified.clear();
    this.#future.clear();
    this.#progressAsked = false;
    this.#scheduler.leave(this);
  }
}

function keyBytes({ start, end = '' }: WatchRange): number {
  return start.length + end.length;
}
