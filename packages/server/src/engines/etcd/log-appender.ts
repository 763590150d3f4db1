import { randomBytes } from 'node:crypto';
import { etcdserverpb } from '@tenure/protocol';
import { nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { engineErrorOf } from './engine-error-of.ts';
import { getOp, keysRead, putOp, valueIs } from './etcd-requests.ts';
import type { RequestOp } from './etcd-requests.ts';
import { framesOf } from './frames.ts';
import type { KeyRange } from './log-keys.ts';
import { encodeMark } from './log-mark.ts';
import type { LogMark } from './log-mark.ts';
import { bytesBehind, encodeRecord } from './log-record.ts';
import type { LogRecord } from './log-record.ts';
import type { StoredLog } from './stored-log.ts';

/** Records up to this size contain their entries, so a read of many records has a bounded size. */
const maxInlineBytes = 64 * 1024;
/** etcd accepts requests of 1.5 MiB by default; the overhead of a part is far below the difference. */
export const maxPartBytes = 1024 * 1024;
/** A batch is held in memory as a whole. */
const maxBodyBytes = 1024 * 1024 * 1024;

/** A prepared append. */
interface PreparedAppend {
  /** The head after the append. */
  readonly end: LogMark;
  readonly record: LogRecord;
  readonly body: Buffer;
  readonly id: string;
}

/**
 * Appends with one transaction: if the head is unchanged, put the record and the new head. A body too large for the
 * transaction is put before it, under an id of its own, and counts only once the record names it. The leftover parts of
 * a failed append can never be appended once the head has moved, so a trim may remove them.
 */
export class LogAppender {
  readonly #log: StoredLog;

  constructor(log: StoredLog) {
    this.#log = log;
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    let head = this.#log.head;
    if (batch.length === 0 || !isAt(head, after)) head = (await this.#log.look()).head;
    if (!isAt(head, after)) throw conflict(head.position, after);
    if (batch.length === 0) return head.position;
    const prepared = prepare(batch, head);
    const isStaged = prepared.body.length > maxPartBytes;
    if (isStaged) await this.#stage(prepared);
    try {
      return await this.#commit(prepared, isStaged);
    } catch (error) {
      const isCertain = error instanceof EngineError && error.code !== 'unknown';
      if (isStaged && isCertain) await this.#remove(prepared);
      throw error;
    }
  }

  /** Puts the body under keys of its own. After a failure here nothing has been appended. */
  async #stage(prepared: PreparedAppend): Promise<void> {
    try {
      for (const put of this.#partPuts(prepared)) await this.#log.client.read(etcdserverpb.KV.method.put, put);
    } catch (error) {
      await this.#remove(prepared);
      throw engineErrorOf('an append was not written, because a part of it could not be written', error, 'unavailable');
    }
  }

  async #commit({ end, record, body, id }: PreparedAppend, isStaged: boolean): Promise<Position> {
    const { client, keys, marker } = this.#log;
    const success: RequestOp[] = [
      putOp(keys.head, encodeMark('head', marker, end)),
      putOp(keys.record(end.position.index), encodeRecord(record)),
    ];
    if (record.body.kind === 'parts' && !isStaged) {
      success.push(putOp(keys.part(record.before.position.index, id, 0), body));
    }
    const compare = [valueIs(keys.head, encodeMark('head', marker, record.before))];
    try {
      const request = { compare, success, failure: [getOp(keys.head)] };
      const answer = await client.write(etcdserverpb.KV.method.txn, request);
      if (!answer.succeeded) throw this.#refused(answer, record.before.position);
    } catch (error) {
      throw engineErrorOf(`an append behind entry ${record.before.position.index} to etcd failed`, error, 'unknown');
    }
    this.#log.noteHead(end);
    return end.position;
  }

  #refused(answer: etcdserverpb.TxnResponse, after: Position): EngineError {
    const head = this.#log.markOf('head', keysRead(answer, 0)[0]);
    // The position matches and the size does not: another writer's size is stored, not the one counted here.
    if (isAt(head, after)) return this.#log.damagedAt(this.#log.keys.head.toString());
    this.#log.noteHead(head);
    return conflict(head.position, after);
  }

  *#partPuts({ record, body, id }: PreparedAppend): Generator<{ key: Buffer; value: Buffer }> {
    for (let number = 0; number * maxPartBytes < body.length; number++) {
      const key = this.#log.keys.part(record.before.position.index, id, number);
      yield { key, value: body.subarray(number * maxPartBytes, (number + 1) * maxPartBytes) };
    }
  }

  /** Keys that cannot be deleted while etcd is unreachable are removed by the next trim. */
  async #remove({ record, id }: PreparedAppend): Promise<void> {
    const range: KeyRange = this.#log.keys.parts(record.before.position.index, id);
    await this.#log.client.write(etcdserverpb.KV.method.deleteRange, range).catch(() => undefined);
  }
}

function prepare(batch: readonly Uint8Array[], before: LogMark): PreparedAppend {
  const body = framesOf(batch);
  if (body.length > maxBodyBytes) throw new Error(`an append of ${batch.length} entries has more than 1 GiB`);
  const id = randomBytes(16).toString('hex');
  const record: LogRecord = {
    before,
    count: batch.length,
    bodyBytes: body.length,
    body:
      body.length <= maxInlineBytes ? { kind: 'inline', bytes: body } : { kind: 'parts', id, partBytes: maxPartBytes },
  };
  const position = batch.reduce(nextPosition, before.position);
  return { end: { position, bytesBefore: bytesBehind(record) }, record, body, id };
}

function isAt({ position }: LogMark, after: Position): boolean {
  return position.index === after.index && position.hash === after.hash;
}

function conflict(tail: Position, after: Position): EngineError {
  const message =
    tail.index === after.index
      ? `the log ends with another entry ${tail.index} than the append expected`
      : `the log ends at entry ${tail.index}, not at ${after.index} as the append expected`;
  return new EngineError('conflict', message, { tail });
}
