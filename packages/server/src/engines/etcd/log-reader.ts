import { EngineError } from '../engine-error.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import { BodyCutter, bytesBehind, lastIndexOf } from './log-record.ts';
import type { LogRecord } from './log-record.ts';
import type { LogLook, StoredLog } from './stored-log.ts';

/** Records contain entries of up to 64 KiB, so one read has no more than 4 MiB. */
const recordsPerRead = 64;
/** A chunk of this size is passed on. */
const fullChunkBytes = 512 * 1024;

/** Reads entries by key, and checks that they continue from the applied position. */
export class LogReader {
  readonly #log: StoredLog;

  constructor(log: StoredLog) {
    this.#log = log;
  }

  /**
   * Reads the entries after `at` with one linearizable read, in chunks; none if the log ends there. First checks that
   * the log holds `at`. Waits for etcd without a timeout, until `signal` aborts. Rejects with EngineError `diverged`,
   * `trimmed` or `damaged`.
   */
  async *behind(at: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    const options = { recordsFrom: at.index, maxRecords: recordsPerRead };
    const look = await this.#log.lookPatiently(options, signal);
    if (look === undefined || this.#endsAt(look, at)) return;
    let next = at;
    let chunk: LoggedEntry[] = [];
    let bytes = 0;
    for (const record of look.records) {
      this.#checkJoins(record, next);
      for await (const entries of this.entriesOf(record, next, signal)) {
        for (const entry of entries) bytes += entry.bytes.length;
        chunk.push(...entries);
        next = chunk.at(-1)?.position ?? next;
        if (bytes < fullChunkBytes) continue;
        yield chunk;
        chunk = [];
        bytes = 0;
      }
      if (signal.aborted) return;
    }
    if (chunk.length > 0) yield chunk;
  }

  /** The entries of a record after `at`, which is within or directly before it, part by part. */
  async *entriesOf(record: LogRecord, at: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    const cutter = new BodyCutter(record.before.position);
    if (at.index === record.before.position.index) checkHash(record.before.position, at);
    for await (const piece of this.#pieces(record, signal)) {
      const entries = cutter.push(piece);
      const known = entries.findIndex(({ position }) => position.index >= at.index);
      const first = entries[known];
      if (first !== undefined && first.position.index === at.index) checkHash(first.position, at);
      const behind = entries.filter(({ position }) => position.index > at.index);
      if (behind.length > 0) yield behind;
    }
    if (signal.aborted) return;
    if (!cutter.isAtEnd || cutter.position.index !== lastIndexOf(record)) throw this.#damaged(record);
    this.#log.noteHead({ position: cutter.position, bytesBefore: bytesBehind(record) });
  }

  async *#pieces(record: LogRecord, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { body, bodyBytes } = record;
    if (body.kind === 'inline') return yield body.bytes;
    for (let number = 0; number * body.partBytes < bodyBytes; number++) {
      const key = this.#log.keys.part(record.before.position.index, body.id, number);
      const found = await this.#log.readPart(key, signal);
      if (signal.aborted) return;
      if (found?.length !== Math.min(body.partBytes, bodyBytes - number * body.partBytes)) {
        // A trim may remove the parts of a record while it is read: the base tells that apart from damage.
        const { base } = await this.#log.look();
        throw base.position.index > record.before.position.index ? trimmed(base.position) : this.#damaged(record);
      }
      yield found;
    }
  }

  /** Whether nothing is behind `at`. Throws if the log cannot hold `at` or does not begin before it. */
  #endsAt({ head, base, records }: LogLook, at: Position): boolean {
    if (at.index > head.position.index) {
      const what = `the log ends at entry ${head.position.index}, before entry ${at.index} that was applied`;
      throw new EngineError('diverged', `${what}: etcd has lost its end`);
    }
    if (at.index < base.position.index) throw trimmed(base.position);
    if (at.index === base.position.index) checkHash(base.position, at);
    if (at.index === head.position.index) checkHash(head.position, at);
    if (at.index === head.position.index) return true;
    const first = records[0];
    if (first === undefined || first.before.position.index > at.index) {
      throw this.#log.damagedAt(`the entry ${at.index + 1}, which is missing`);
    }
    return false;
  }

  #checkJoins(record: LogRecord, next: Position): void {
    const { index } = record.before.position;
    if (index > next.index) throw this.#log.damagedAt(`the entry ${next.index + 1}, which is missing`);
  }

  #damaged(record: LogRecord): EngineError {
    return this.#log.damagedAt(this.#log.keys.record(lastIndexOf(record)).toString());
  }
}

function checkHash(found: Position, at: Position): void {
  if (found.hash === at.hash) return;
  const message = `the log in etcd has another entry ${at.index} than the one that was applied`;
  throw new EngineError('diverged', `${message}: it lost or replaced its end`);
}

function trimmed(base: Position): EngineError {
  const message = `the log begins behind entry ${base.index}, what was before it is gone: load the snapshot`;
  return new EngineError('trimmed', message);
}
