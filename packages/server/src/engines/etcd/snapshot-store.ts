import { createHash, randomBytes } from 'node:crypto';
import { etcdserverpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position, StoredSnapshot } from '../log-engine.ts';
import { engineErrorOf } from './engine-error-of.ts';
import { deleteOp, exists, modRevisionIs, putOp, valueIs } from './etcd-requests.ts';
import { FrameCutter } from './frames.ts';
import { maxPartBytes } from './log-appender.ts';
import { encodeMark, encodeSnapshotMark } from './log-mark.ts';
import type { LogMark, SnapshotMark } from './log-mark.ts';
import { PartWriter } from './part-writer.ts';
import type { QuotaWatch } from './quota-watch.ts';
import type { StoredLog } from './stored-log.ts';

/**
 * Snapshots in parts, invisible until one transaction names them as the newest. Unnamed parts are removed before the
 * next snapshot is written. The parts of a snapshot are deleted in one request, so the first one stands for all.
 */
export class SnapshotStore {
  readonly #log: StoredLog;
  readonly #quota: QuotaWatch;

  constructor(log: StoredLog, quota: QuotaWatch) {
    this.#log = log;
    this.#quota = quota;
  }

  /** The log has confirmed the position. `check` throws once the engine has ended. */
  async save(position: Position, chunks: AsyncIterable<Uint8Array>, check: () => void): Promise<void> {
    await this.#removeUnnamed();
    const id = randomBytes(16).toString('hex');
    try {
      const mark = await this.#writeParts(position, id, chunks, check);
      await this.#name(mark);
    } catch (error) {
      // A snapshot that may have been named must stay complete.
      const isCertain = !(error instanceof EngineError && error.code === 'unknown');
      if (isCertain) await this.#remove({ position, id });
      throw error;
    }
  }

  /** Like `save`, for a log that begins with it. One transaction moves head and base, and names the snapshot. */
  async seed(position: Position, chunks: AsyncIterable<Uint8Array>, check: () => void): Promise<void> {
    await this.#checkEmpty();
    await this.#removeUnnamed();
    const id = randomBytes(16).toString('hex');
    try {
      const mark = await this.#writeParts(position, id, chunks, check);
      if (!(await this.#attempt(mark, () => this.#begin(mark)))) {
        await this.#checkEmpty();
        throw new EngineError('unavailable', 'the snapshot was removed while it was written: try again');
      }
      await this.#log.look();
    } catch (error) {
      const isCertain = !(error instanceof EngineError && error.code === 'unknown');
      if (isCertain) await this.#remove({ position, id });
      throw error;
    }
  }

  async #checkEmpty(): Promise<void> {
    const { head, snapshot } = await this.#log.look();
    if (head.position.index === 0 && snapshot === undefined) return;
    const tail = head.position;
    throw new EngineError('conflict', `the log is not empty: it ends at entry ${tail.index}`, { tail });
  }

  #begin(mark: SnapshotMark): Promise<{ readonly succeeded: boolean }> {
    const { client, keys, marker } = this.#log;
    const start: LogMark = { position: logStart, bytesBefore: 0 };
    const end: LogMark = { position: mark.position, bytesBefore: 0 };
    const compare = [
      valueIs(keys.head, encodeMark('head', marker, start)),
      valueIs(keys.base, encodeMark('base', marker, start)),
      modRevisionIs(keys.snapshot, 0n),
    ];
    if (mark.bytes > 0) compare.push(exists(keys.snapshotPart(mark.position.index, mark.id, 0)));
    const success = [
      putOp(keys.head, encodeMark('head', marker, end)),
      putOp(keys.base, encodeMark('base', marker, end)),
      putOp(keys.snapshot, encodeSnapshotMark(marker, mark)),
    ];
    return client.write(etcdserverpb.KV.method.txn, { compare, success });
  }

  async #writeParts(
    position: Position,
    id: string,
    chunks: AsyncIterable<Uint8Array>,
    check: () => void,
  ): Promise<SnapshotMark> {
    const { client, keys } = this.#log;
    const hash = createHash('sha256');
    this.#quota.begin();
    const writer = new PartWriter(maxPartBytes, async (bytes, number) => {
      hash.update(bytes);
      await this.#quota.admit(bytes.length);
      try {
        const put = { key: keys.snapshotPart(position.index, id, number), value: bytes };
        await client.read(etcdserverpb.KV.method.put, put);
      } catch (error) {
        throw engineErrorOf('a snapshot could not be stored in etcd', error, 'unavailable');
      }
    });
    for await (const chunk of chunks) {
      check();
      await writer.writeFrame(chunk);
    }
    check();
    const bytes = await writer.finish();
    return { position, id, bytes, partBytes: maxPartBytes, sha256: hash.digest('hex') };
  }

  /** Makes it the newest, unless a newer one has come. */
  async #name(mark: SnapshotMark): Promise<void> {
    const { client, keys, marker } = this.#log;
    for (;;) {
      const { snapshot: old, snapshotRevision } = await this.#log.look();
      if (old !== undefined && old.position.index > mark.position.index) return this.#remove(mark);
      const compare = [modRevisionIs(keys.snapshot, snapshotRevision)];
      if (mark.bytes > 0) compare.push(exists(keys.snapshotPart(mark.position.index, mark.id, 0)));
      const success = [putOp(keys.snapshot, encodeSnapshotMark(marker, mark))];
      const named = await this.#attempt(mark, () => client.write(etcdserverpb.KV.method.txn, { compare, success }));
      if (named) {
        if (old !== undefined && old.id !== mark.id) await this.#remove(old);
        await this.#log.look();
        return;
      }
      const now = await this.#log.look();
      if (now.snapshotRevision === snapshotRevision) {
        const message = 'the snapshot was removed while it was written, by a server that writes another one';
        throw new EngineError('unavailable', message);
      }
    }
  }

  /** An ambiguous outcome is resolved by reading the key. */
  async #attempt(mark: SnapshotMark, write: () => Promise<{ readonly succeeded: boolean }>): Promise<boolean> {
    try {
      return (await write()).succeeded;
    } catch (error) {
      if (!(error instanceof EtcdError && error.etcdCode === 'ambiguous')) {
        throw engineErrorOf('a snapshot could not be stored in etcd', error, 'unknown');
      }
      const { snapshot } = await this.#log.look().catch(() => ({ snapshot: undefined }));
      if (snapshot?.id === mark.id) return true;
      throw engineErrorOf('it is not known whether a snapshot was stored in etcd', error, 'unknown');
    }
  }

  async load(signal: AbortSignal, check: () => void): Promise<StoredSnapshot | undefined> {
    const { snapshot, revision } = await this.#log.look();
    if (snapshot === undefined) return undefined;
    return { position: snapshot.position, chunks: this.#read(snapshot, revision, signal, check) };
  }

  /** At the revision at which it was found: a replaced snapshot stays readable until etcd is compacted. */
  async *#read(
    mark: SnapshotMark,
    revision: bigint,
    signal: AbortSignal,
    check: () => void,
  ): AsyncGenerator<Uint8Array> {
    const hash = createHash('sha256');
    const cutter = new FrameCutter();
    for (let number = 0; number * mark.partBytes < mark.bytes; number++) {
      const part = await this.#part(mark, number, revision, signal);
      check();
      if (part?.length !== Math.min(mark.partBytes, mark.bytes - number * mark.partBytes)) {
        throw await this.#whyMissing(mark);
      }
      hash.update(part);
      for (const chunk of cutter.push(part)) {
        yield chunk;
        check();
      }
    }
    if (!cutter.isAtEnd || hash.digest('hex') !== mark.sha256) throw this.#damaged(mark);
  }

  #part(
    { position, id }: SnapshotMark,
    number: number,
    revision: bigint,
    signal: AbortSignal,
  ): Promise<Buffer | undefined> {
    return this.#log.readPart(this.#log.keys.snapshotPart(position.index, id, number), signal, revision);
  }

  async #whyMissing(mark: SnapshotMark): Promise<EngineError> {
    const { snapshot } = await this.#log.look();
    if (snapshot?.id === mark.id) return this.#damaged(mark);
    return new EngineError('trimmed', 'the snapshot was replaced while it was read: load the newest one');
  }

  #damaged({ position, id }: SnapshotMark): EngineError {
    return this.#log.damagedAt(`the snapshot ${this.#log.keys.snapshotParts(position.index, id).key.toString()}`);
  }

  /** Parts that cannot be removed while etcd is unreachable are removed before the next snapshot. */
  async #remove({ position, id }: Pick<SnapshotMark, 'position' | 'id'>): Promise<void> {
    const range = this.#log.keys.snapshotParts(position.index, id);
    await this.#log.client.read(etcdserverpb.KV.method.deleteRange, range).catch(() => undefined);
  }

  /** If another server names a snapshot at this moment, nothing is removed: it may be one of these. */
  async #removeUnnamed(): Promise<void> {
    const { client, keys } = this.#log;
    const { snapshot, snapshotRevision } = await this.#log.look();
    const all = keys.allSnapshotParts;
    const named = snapshot && keys.snapshotParts(snapshot.position.index, snapshot.id);
    const before = { key: all.key, rangeEnd: named?.key ?? all.rangeEnd };
    const ranges = named === undefined ? [before] : [before, { key: named.rangeEnd, rangeEnd: all.rangeEnd }];
    const compare = [modRevisionIs(keys.snapshot, snapshotRevision)];
    try {
      await client.read(etcdserverpb.KV.method.txn, { compare, success: ranges.map(deleteOp) });
    } catch (error) {
      throw engineErrorOf('removing an incomplete snapshot from etcd failed', error, 'unavailable');
    }
  }
}
