import { EngineError } from '../engine-error.ts';
import type { EngineState } from '../engine-health.ts';
import type { LoggedEntry, Position, SharedLogEngine, StoredSnapshot } from '../log-engine.ts';
import { EtcdLogClient } from './etcd-log-client.ts';
import type { EtcdCredentials, EtcdTls } from './etcd-log-client.ts';
import { troubleOf } from './engine-error-of.ts';
import { etcdNotices } from './etcd-notices.ts';
import { LogAppender } from './log-appender.ts';
import { LogKeys } from './log-keys.ts';
import { openStoredLog } from './log-opening.ts';
import { LogReader } from './log-reader.ts';
import { LogTrimmer } from './log-trimmer.ts';
import { LogWatch } from './log-watch.ts';
import { QuotaWatch } from './quota-watch.ts';
import { SnapshotStore } from './snapshot-store.ts';
import type { StoredLog } from './stored-log.ts';

export interface EtcdEngineOptions {
  /** host:port of each member. */
  readonly endpoints: readonly string[];
  /**
   * All keys of the log are under it: `/tenure` stands for `/tenure/...`. Each log in one etcd needs its own prefix.
   */
  readonly prefix: string;
  /** Refuse a prefix without a log. False by default. */
  readonly mustExist?: boolean;
  readonly credentials?: EtcdCredentials;
  /** Uses TLS when given, even if it is empty; without it plain text. */
  readonly tls?: EtcdTls;
  /** etcd serves only this log: its old revisions are compacted with each trim. False by default. */
  readonly dedicated?: boolean;
  /** etcd's --quota-backend-bytes, for versions before 3.6, which do not report it. 2 GiB by default, as in etcd. */
  readonly quotaBytes?: number;
  /**
   * After this time the outcome of an append is unknown, and a read is sent to another member. A member holds a request
   * that it sent to a dead leader for seven seconds, although a new leader is elected after one, so a short timeout is
   * better. 2 s by default.
   */
  readonly requestTimeoutMs?: number;
  /** How long opening waits for etcd. 10 s by default. */
  readonly openTimeoutMs?: number;
  /** Followers that receive nothing for this long read the log themselves. 1 s by default. */
  readonly pollIntervalMs?: number;
  /** Receives a sentence for the operator. */
  readonly onNotice?: (notice: string) => void;
  /** Called when etcd can no longer be reached, and when it can again. The first call is never `reachable: true`. */
  readonly onState?: (state: EngineState) => void;
}

/**
 * Opens the log under a prefix in etcd, and creates it if it does not exist. Any number of servers may have it open.
 * Rejects with EngineError `unavailable` (etcd cannot be reached) or `unusable` (the message names the remedy); then
 * nothing was changed.
 */
export async function openEtcdEngine(options: EtcdEngineOptions): Promise<SharedLogEngine> {
  const keys = new LogKeys(options.prefix);
  if (options.endpoints.length === 0) throw new EngineError('unusable', 'no etcd endpoint was given');
  let isReachable = true;
  const client = new EtcdLogClient({
    endpoints: options.endpoints,
    ...options.credentials,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    timeoutMs: options.requestTimeoutMs ?? 2000,
    onOutcome: (failure) => {
      if (isReachable === (failure === undefined)) return;
      isReachable = failure === undefined;
      options.onState?.(
        failure === undefined
          ? { reachable: true }
          : { reachable: false, trouble: troubleOf(failure), reason: failure.message },
      );
    },
  });
  try {
    const log = await openStoredLog(client, keys, {
      timeoutMs: options.openTimeoutMs ?? 10_000,
      mustExist: options.mustExist ?? false,
    });
    for (const notice of await etcdNotices(client, keys, options.dedicated ?? false)) options.onNotice?.(notice);
    return new EtcdEngine(log, options);
  } catch (error) {
    client.close();
    throw error;
  }
}

class EtcdEngine implements SharedLogEngine {
  readonly name = 'etcd';
  readonly isShared = true;
  readonly #log: StoredLog;
  readonly #appender: LogAppender;
  readonly #reader: LogReader;
  readonly #watch: LogWatch;
  readonly #snapshots: SnapshotStore;
  readonly #trimmer: LogTrimmer;
  /** Aborts when closing begins: ends followers and snapshot reads. */
  readonly #ending = new AbortController();
  /** The operations in progress, so that close can wait for them. */
  #appending: Promise<Position> | undefined;
  #saving: Promise<void> | undefined;
  #trimming: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(log: StoredLog, options: EtcdEngineOptions) {
    this.#log = log;
    this.#appender = new LogAppender(log);
    this.#reader = new LogReader(log);
    this.#watch = new LogWatch(log, options.pollIntervalMs ?? 1000);
    this.#snapshots = new SnapshotStore(log, new QuotaWatch(log.client, options.quotaBytes));
    this.#trimmer = new LogTrimmer(log, options.dedicated ?? false);
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    this.#check();
    if (this.#appending !== undefined) throw new Error('an append was begun while another one is in progress');
    this.#appending = this.#appender.append(batch, after);
    try {
      return await this.#appending;
    } finally {
      this.#appending = undefined;
    }
  }

  async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    this.#check();
    const stop = AbortSignal.any([signal, this.#ending.signal]);
    const leave = this.#watch.join();
    try {
      yield* this.#follow(from, stop);
    } catch (error) {
      if (!signal.aborted) this.#check();
      throw error;
    } finally {
      leave();
    }
    if (!signal.aborted) this.#check();
  }

  async *#follow(from: Position, stop: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    const watch = this.#watch;
    let at = from;
    /** The last round in which the log was read by key; the epoch in which such a read has reached the end. */
    let round: number | undefined;
    let epochAtEnd: number | undefined;
    while (!stop.aborted) {
      const record = round === watch.round ? watch.recordBehind(at.index) : undefined;
      const isJoined = record?.before.position.hash === at.hash;
      const mustRead = round !== watch.round || watch.hasSeenBeyond(at.index);
      if (!isJoined && !mustRead) {
        await watch.notifier.wait(stop);
        continue;
      }
      const readIn = { round: watch.round, epoch: watch.epoch };
      const start = at.index;
      const chunks = record && isJoined ? this.#reader.entriesOf(record, at, stop) : this.#reader.behind(at, stop);
      for await (const chunk of chunks) {
        at = chunk.at(-1)?.position ?? at;
        yield chunk;
        if (stop.aborted) return;
      }
      if (isJoined) continue;
      const hasEnded = at.index === start;
      if (!hasEnded && epochAtEnd === watch.epoch) watch.expect(at.index);
      if (hasEnded) epochAtEnd = readIn.epoch;
      // While more entries exist, they are read by key; records received from the watch meanwhile come after them.
      round = hasEnded ? readIn.round : undefined;
    }
  }

  async tail(): Promise<Position> {
    this.#check();
    return (await this.#log.look()).head.position;
  }

  saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#save(() => this.#saveSnapshot(position, chunks));
  }

  seed(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#save(() => this.#snapshots.seed(position, chunks, () => this.#check()));
  }

  async #save(work: () => Promise<void>): Promise<void> {
    this.#check();
    if (this.#saving !== undefined) throw new Error('a snapshot was begun while another one is being saved');
    this.#saving = work();
    try {
      await this.#saving;
    } finally {
      this.#saving = undefined;
    }
  }

  async #saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const { snapshot } = await this.#log.look();
    if (snapshot !== undefined && position.index < snapshot.position.index) return;
    // A server that saves the state of another log is refused here.
    const behind = this.#reader.behind(position, this.#ending.signal);
    await behind.next();
    await behind.return(undefined);
    this.#check();
    await this.#snapshots.save(position, chunks, () => this.#check());
  }

  loadSnapshot(): Promise<StoredSnapshot | undefined> {
    const check = (): void => this.#check();
    return this.#answer(() => this.#snapshots.load(this.#ending.signal, check));
  }

  trim(index: number): Promise<void> {
    return this.#answer(() => {
      const done = this.#trimming.then(() => this.#trimmer.trim(index, () => this.#check()));
      this.#trimming = done.catch(() => undefined);
      return done;
    });
  }

  sizeBytes(): number {
    return this.#log.sizeBytes;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ending.abort();
    this.#watch.close();
    await Promise.allSettled([this.#appending, this.#saving, this.#trimming]);
    this.#log.client.close();
  }

  #check(): void {
    if (this.#ending.signal.aborted) throw new EngineError('closed', 'the log engine is closed');
  }

  async #answer<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#check();
    return work();
  }
}
