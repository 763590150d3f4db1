import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';

/** A position in the log, with the total size of all records before it since the log was created. */
export interface LogMark {
  readonly position: Position;
  readonly bytesBefore: number;
}

/** The value of the key `snapshot`, about the newest snapshot. */
export interface SnapshotMark {
  readonly position: Position;
  /** 32 hex digits, in the keys of its parts. */
  readonly id: string;
  /** Of all its parts together; each has `partBytes` except the last one. */
  readonly bytes: number;
  readonly partBytes: number;
  /** Digest of all its parts, in hex. */
  readonly sha256: string;
}

/** The head and the base of a log. */
export type MarkKind = 'head' | 'base';

/**
 * The values of the keys `head`, `base` and `snapshot` are lines of text, readable with `etcdctl get`: `tenure-<kind>
 * <format> <log> <index> <hash> ...`. `<log>` is a random id from the creation of the log: data of another log is never
 * mistaken for this one's.
 */
const format = 1;
const shape = /^tenure-(head|base|snapshot) (\d+) (.*)$/s;

export function encodeMark(kind: MarkKind, log: string, { position, bytesBefore }: LogMark): Buffer {
  return Buffer.from(`tenure-${kind} ${format} ${log} ${position.index} ${position.hash} ${bytesBefore}`);
}

export function encodeSnapshotMark(log: string, mark: SnapshotMark): Buffer {
  const { position, id, bytes, partBytes, sha256 } = mark;
  const words = [log, position.index, position.hash, id, bytes, partBytes, sha256];
  return Buffer.from(`tenure-snapshot ${format} ${words.join(' ')}`);
}

/** Parses a head or a base, with the id of its log. Throws EngineError `unusable` or `damaged`. */
export function decodeMark(kind: MarkKind, key: Buffer, value: Uint8Array): LogMark & { readonly log: string } {
  const [log, index, hash, bytes, ...more] = wordsOf(kind, key, value);
  const mark = { log: log ?? '', position: positionOf(index, hash), bytesBefore: Number(bytes) };
  if (more.length > 0 || !isMarker(mark.log) || mark.position === undefined || !isCount(mark.bytesBefore)) {
    throw damaged(key);
  }
  return { ...mark, position: mark.position };
}

/** Parses the output of `encodeSnapshotMark`, with the id of its log. Throws EngineError `unusable` or `damaged`. */
export function decodeSnapshotMark(key: Buffer, value: Uint8Array): SnapshotMark & { readonly log: string } {
  const [log = '', index, hash, id = '', bytes, partBytes, sha256 = '', ...more] = wordsOf('snapshot', key, value);
  const position = positionOf(index, hash);
  const mark = { id, bytes: Number(bytes), partBytes: Number(partBytes), sha256 };
  const isWhole = isMarker(log) && isMarker(id) && isCount(mark.bytes) && isCount(mark.partBytes) && mark.partBytes > 0;
  if (more.length > 0 || position === undefined || !isWhole || !/^[0-9a-f]{64}$/.test(sha256)) throw damaged(key);
  return { ...mark, log, position };
}

function wordsOf(kind: string, key: Buffer, value: Uint8Array): string[] {
  const [, found, version, rest] = shape.exec(Buffer.from(value).toString('utf8')) ?? [];
  if (found !== kind || rest === undefined) {
    const message =
      `the etcd key ${key.toString()} holds something that is not Tenure's: ` +
      'give the log a prefix of its own, or remove that key if nothing needs it';
    throw new EngineError('unusable', message);
  }
  if (Number(version) !== format) {
    const message = `the etcd key ${key.toString()} has format ${version}, this program reads ${format}`;
    throw new EngineError('unusable', `${message}: run the newer Tenure`);
  }
  return rest.split(' ');
}

function positionOf(index: string | undefined, hash: string | undefined): Position | undefined {
  const at = Number(index);
  return isCount(at) && isMarker(hash ?? '') ? { index: at, hash: hash ?? '' } : undefined;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isMarker(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text);
}

function damaged(key: Buffer): EngineError {
  const message = `the etcd key ${key.toString()} does not read as Tenure writes it: restore etcd from a backup`;
  return new EngineError('damaged', message);
}
