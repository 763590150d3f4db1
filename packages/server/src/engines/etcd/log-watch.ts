import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { AppendNotifier } from '../append-notifier.ts';
import type { EtcdLogClient } from './etcd-log-client.ts';
import type { KeyRange } from './log-keys.ts';
import { lastIndexOf } from './log-record.ts';
import type { LogRecord } from './log-record.ts';
import type { StoredLog } from './stored-log.ts';

/** Records kept for followers; a follower reads older ones by key. */
const maxRecentBytes = 4 * 1024 * 1024;
const longestPauseMs = 1000;
const shortestPauseMs = 50;

/**
 * One watch on the records for all followers of an engine, open while there is a follower. It only speeds up what a
 * read would find: a record that it missed, dropped or never had is read by key.
 *
 * A watch begins at the current revision. When it has begun, the `round` changes: every follower then reads by key from
 * its own position and checks that the log still holds it. So no record is missed, and no etcd revision is needed to
 * resume, which could be compacted, or belong to an etcd that was restored from a backup.
 */
export class LogWatch {
  readonly notifier = new AppendNotifier();
  readonly #log: StoredLog;
  readonly #client: EtcdLogClient;
  readonly #silenceMs: number;
  readonly #range: KeyRange;
  #followers = 0;
  #stop: AbortController | undefined;
  #epoch = 0;
  #round = 0;
  #hasHeard = false;
  /** Keyed by the index before the record; in order of arrival. */
  readonly #recent = new Map<number, LogRecord>();
  #recentBytes = 0;
  #newestIndex = 0;
  #expectedIndex = 0;
  #cancel: (() => void) | undefined;

  /** After `silenceMs` without a record the followers read the log themselves. */
  constructor(log: StoredLog, silenceMs: number) {
    this.#log = log;
    this.#client = log.client;
    this.#silenceMs = silenceMs;
    this.#range = log.keys.recordsFrom(0);
  }

  /** Incremented by each watch that begins. */
  get epoch(): number {
    return this.#epoch;
  }

  /**
   * Incremented by each new watch and each silent interval: a follower that has not read by key in this round does so.
   */
  get round(): number {
    return this.#round;
  }

  /** The record directly after an index, if it is still cached. */
  recordBehind(index: number): LogRecord | undefined {
    return this.#recent.get(index);
  }

  /** Whether a record after an index has arrived. */
  hasSeenBeyond(index: number): boolean {
    return this.#newestIndex > index;
  }

  /** Keeps the watch open until the returned function is called. */
  join(): () => void {
    this.#followers++;
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      void this.#run(this.#stop.signal);
    }
    let hasLeft = false;
    return () => {
      if (hasLeft) return;
      hasLeft = true;
      if (--this.#followers === 0) this.close();
    };
  }

  /**
   * A read has found an entry that was appended after this watch began. If the watch does not report it, the watch is
   * replaced: its member may be cut off from the others.
   */
  expect(index: number): void {
    this.#expectedIndex = Math.max(this.#expectedIndex, index);
  }

  close(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#forget();
    this.notifier.notify();
  }

  async #run(stop: AbortSignal): Promise<void> {
    const poll = setInterval(() => this.#pollIfSilent(), this.#silenceMs);
    for (let failures = 0; !stop.aborted && !this.#client.isClosed;) {
      failures = (await this.#watchOnce(stop)) ? 0 : failures + 1;
      const pauseMs = Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 10));
      if (!stop.aborted) await this.#client.pause(pauseMs, stop);
    }
    clearInterval(poll);
  }

  #pollIfSilent(): void {
    if (!this.#hasHeard) {
      // The watch had a whole interval to report the entry that a read has found.
      if (this.#expectedIndex > this.#newestIndex) this.#cancel?.();
      this.#round++;
      this.notifier.notify();
    }
    this.#hasHeard = false;
  }

  #beginEpoch(): void {
    this.#forget();
    this.#epoch++;
    this.#round++;
    this.notifier.notify();
  }

  /** One watch until it ends. True if it had begun. */
  async #watchOnce(stop: AbortSignal): Promise<boolean> {
    let began = false;
    try {
      const { call, abandon } = await this.#client.openWatch();
      const cancel = (): void => call.cancel();
      this.#cancel = cancel;
      stop.addEventListener('abort', cancel);
      await new Promise<void>((resolve) => {
        call.on('data', (bytes: Buffer) => {
          if (stop.aborted) return;
          const answer = fromBinary(etcdserverpb.WatchResponseSchema, bytes, { readUnknownFields: false });
          // Compacted, denied, or the member has lost the cluster: only the end matters.
          if (answer.canceled) return cancel();
          if (answer.created) {
            began = true;
            this.#beginEpoch();
          }
          this.#take(answer);
        });
        call.on('error', () => resolve());
        call.on('close', () => resolve());
        call.write(this.#createRequest());
        if (stop.aborted) cancel();
      });
      stop.removeEventListener('abort', cancel);
      if (this.#cancel === cancel) this.#cancel = undefined;
      if (!stop.aborted) abandon();
    } catch {
      // No endpoint answers: the followers' own reads report it, and the next attempt comes after a pause.
    }
    return began;
  }

  #createRequest(): Buffer {
    const noDeletes = etcdserverpb.WatchCreateRequest_FilterType.NODELETE;
    const value = { ...this.#range, filters: [noDeletes], fragment: true };
    const request = create(etcdserverpb.WatchRequestSchema, { requestUnion: { case: 'createRequest', value } });
    return Buffer.from(toBinary(etcdserverpb.WatchRequestSchema, request));
  }

  #take({ events }: etcdserverpb.WatchResponse): void {
    for (const { kv } of events) {
      const record = kv && this.#log.recordIn(kv);
      if (record === undefined) continue;
      this.#hasHeard = true;
      this.#newestIndex = Math.max(this.#newestIndex, lastIndexOf(record));
      const { index } = record.before.position;
      this.#recentBytes += bytesOf(record) - bytesOf(this.#recent.get(index));
      this.#recent.set(index, record);
    }
    for (const [index, record] of this.#recent) {
      if (this.#recentBytes <= maxRecentBytes) break;
      this.#recentBytes -= bytesOf(record);
      this.#recent.delete(index);
    }
    this.notifier.notify();
  }

  #forget(): void {
    this.#recent.clear();
    this.#recentBytes = 0;
    this.#newestIndex = 0;
    this.#expectedIndex = 0;
  }
}

function bytesOf(record: LogRecord | undefined): number {
  if (record === undefined) return 0;
  return 100 + (record.body.kind === 'inline' ? record.body.bytes.length : 0);
}
