import { etcdserverpb } from '@tenure/protocol';
import type { mvccpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import { EngineError } from '../engine-error.ts';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { engineErrorOf } from './engine-error-of.ts';
import { getOp, keysRead, rangeOp } from './etcd-requests.ts';
import type { LogKeys } from './log-keys.ts';
import { decodeMark, decodeSnapshotMark } from './log-mark.ts';
import type { LogMark, MarkKind, SnapshotMark } from './log-mark.ts';
import { decodeRecord, lastIndexOf } from './log-record.ts';
import type { LogRecord } from './log-record.ts';

/** The log at one moment. */
export interface LogLook {
  readonly head: LogMark;
  readonly base: LogMark;
  readonly snapshot: SnapshotMark | undefined;
  /** The mod revision of each of the three keys; 0 for a key that does not exist. */
  readonly baseRevision: bigint;
  readonly snapshotRevision: bigint;
  /** The first records from the requested index, in order. */
  readonly records: readonly LogRecord[];
  /** etcd's revision at that moment. */
  readonly revision: bigint;
}

export interface LookOptions {
  /** Also return the records whose last entry is at or after this index. */
  readonly recordsFrom?: number;
  readonly maxRecords?: number;
}

/** A log in etcd as shared by all parts of its engine: its keys, its id, and the newest known state. */
export class StoredLog {
  readonly client: EtcdLogClient;
  readonly keys: LogKeys;
  /** The id that the log got when it was created. */
  readonly marker: string;
  #head: LogMark;
  #base: LogMark;
  #snapshotBytes = 0;

  constructor(client: EtcdLogClient, keys: LogKeys, marker: string, head: LogMark) {
    this.client = client;
    this.keys = keys;
    this.marker = marker;
    this.#head = head;
    this.#base = head;
  }

  /** The furthest known end. It may be behind the actual end, never beyond it. */
  get head(): LogMark {
    return this.#head;
  }

  /** As of the last read. */
  get sizeBytes(): number {
    return Math.max(0, this.#head.bytesBefore - this.#base.bytesBefore) + this.#snapshotBytes;
  }

  noteHead(head: LogMark): void {
    if (head.position.index > this.#head.position.index) this.#head = head;
  }

  /** One linearizable read of everything. Rejects with EngineError. */
  async look(options: LookOptions = {}): Promise<LogLook> {
    const { read } = lookRequest(this.keys, options);
    try {
      return this.#taken(await this.client.read(etcdserverpb.KV.method.txn, read), options);
    } catch (error) {
      throw engineErrorOf(`reading the log under ${this.keys.prefix} in etcd failed`, error, 'unavailable');
    }
  }

  /** Like `look`, but waits for etcd without a timeout; undefined when `signal` aborts. */
  async lookPatiently(options: LookOptions, signal: AbortSignal): Promise<LogLook | undefined> {
    const { read } = lookRequest(this.keys, options);
    try {
      const answer = await this.client.readPatiently(etcdserverpb.KV.method.txn, read, signal);
      return answer && this.#taken(answer, options);
    } catch (error) {
      throw engineErrorOf(`reading the log under ${this.keys.prefix} in etcd failed`, error, 'unavailable');
    }
  }

  /** The head or the base of this log. Throws EngineError `diverged` when it is missing or belongs to another log. */
  markOf(kind: MarkKind, found: mvccpb.KeyValue | undefined): LogMark {
    const key = this.keys[kind];
    const mark = found && decodeMark(kind, key, found.value);
    if (mark?.log === this.marker) return { position: mark.position, bytesBefore: mark.bytesBefore };
    const what = mark === undefined ? 'was removed' : 'belongs to another log';
    const help = 'the log was removed or replaced by another one; the server must not continue with it';
    throw new EngineError('diverged', `the etcd key ${key.toString()} ${what}: ${help}`);
  }

  #taken(answer: etcdserverpb.TxnResponse, options: LookOptions): LogLook {
    const [base, snapshot] = [keysRead(answer, 1)[0], keysRead(answer, 2)[0]];
    const mark = snapshot && decodeSnapshotMark(this.keys.snapshot, snapshot.value);
    if (mark !== undefined && mark.log !== this.marker) {
      throw new EngineError('damaged', `the snapshot under ${this.keys.prefix} in etcd belongs to another log`);
    }
    const records = options.recordsFrom === undefined ? [] : keysRead(answer, 3).map((kv) => this.#recordOf(kv));
    const look = {
      head: this.markOf('head', keysRead(answer, 0)[0]),
      base: this.markOf('base', base),
      snapshot: mark,
      baseRevision: base?.modRevision ?? 0n,
      snapshotRevision: snapshot?.modRevision ?? 0n,
      records,
      revision: answer.header?.revision ?? 0n,
    };
    this.noteHead(look.head);
    if (look.head.position.index === this.#head.position.index) this.#head = look.head;
    this.#base = look.base;
    this.#snapshotBytes = mark?.bytes ?? 0;
    return look;
  }

  #recordOf(found: mvccpb.KeyValue): LogRecord {
    const record = this.recordIn(found);
    if (record === undefined) throw this.damagedAt(Buffer.from(found.key).toString());
    return record;
  }

  /** The record in a key; undefined for any other key. */
  recordIn({ key, value }: mvccpb.KeyValue): LogRecord | undefined {
    const record = decodeRecord(value);
    return record !== undefined && lastIndexOf(record) === this.keys.recordIndex(key) ? record : undefined;
  }

  damagedAt(place: string): EngineError {
    const help = 'restore etcd from a backup, or begin a new log under another prefix from a snapshot';
    return new EngineError('damaged', `the log in etcd is damaged at ${place}: ${help}`);
  }

  /**
   * The bytes at `key`, a part of a record or of a snapshot; undefined when it is not there, or `signal` aborts. Reads
   * at `revision`, and at the newest one when that is 0 or etcd has compacted it.
   */
  async readPart(key: Buffer, signal: AbortSignal, revision = 0n): Promise<Buffer | undefined> {
    const { range } = etcdserverpb.KV.method;
    try {
      const answer = await this.client.readPatiently(range, { key, revision }, signal).catch((error: unknown) => {
        if (!(error instanceof EtcdError && error.etcdCode === 'compacted')) throw error;
        return this.client.readPatiently(range, { key }, signal);
      });
      const value = answer?.kvs[0]?.value;
      return value && Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    } catch (error) {
      throw engineErrorOf(`reading ${key.toString()} in etcd failed`, error, 'unavailable');
    }
  }
}

function lookRequest(keys: LogKeys, { recordsFrom, maxRecords }: LookOptions) {
  const success = [getOp(keys.head), getOp(keys.base), getOp(keys.snapshot)];
  if (recordsFrom !== undefined) success.push(rangeOp(keys.recordsFrom(recordsFrom), maxRecords ?? 1));
  return { read: { success } };
}
