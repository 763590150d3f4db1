import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import { framesOf } from './frames.ts';
import { LogKeys } from './log-keys.ts';
import { decodeMark, decodeSnapshotMark, encodeMark, encodeSnapshotMark } from './log-mark.ts';
import { BodyCutter, decodeRecord, encodeRecord } from './log-record.ts';
import type { LogRecord } from './log-record.ts';

const hexDigits = (digits: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: digits / 2, maxLength: digits / 2 }).map((bytes) => Buffer.from(bytes).toString('hex'));
/** With the prototype of literals, so that they compare as equal. */
const plain = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });
const u48 = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const position = plain({ index: u48, hash: hexDigits(32) });
const mark = plain({ position, bytesBefore: u48 });
const batch = fc.array(fc.uint8Array({ maxLength: 50 }), { minLength: 1, maxLength: 20 });

const inline: fc.Arbitrary<LogRecord> = fc.tuple(mark, batch).map(([before, entries]) => {
  const bytes = framesOf(entries);
  return { before, count: entries.length, bodyBytes: bytes.length, body: { kind: 'inline', bytes } };
});
const inParts: fc.Arbitrary<LogRecord> = plain({
  before: mark,
  count: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  bodyBytes: u48,
  body: plain({
    kind: fc.constant('parts' as const),
    id: hexDigits(32),
    partBytes: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  }),
});

describe('a record', () => {
  test('decodes as encoded', () => {
    fc.assert(
      fc.property(fc.oneof(inline, inParts), (record) => {
        expect(decodeRecord(encodeRecord(record))).toEqual(record);
      }),
    );
  });

  test('that is truncated, or of another format, is not decoded', () => {
    fc.assert(
      fc.property(fc.oneof(inline, inParts), fc.nat(), (record, where) => {
        const value = encodeRecord(record);
        expect(decodeRecord(value.subarray(0, where % value.length))).toBeUndefined();
        value[0] = 2;
        expect(decodeRecord(value)).toBeUndefined();
      }),
    );
  });

  test('gives its entries the positions that the running hash gives', () => {
    fc.assert(
      fc.property(position, batch, (before, entries) => {
        const cutter = new BodyCutter(before);
        const cut = cutter.push(framesOf(entries));
        let at = before;
        for (const [number, bytes] of entries.entries()) {
          at = nextPosition(at, bytes);
          expect(cut[number]!.position).toEqual(at);
          expect(Buffer.from(cut[number]!.bytes)).toEqual(Buffer.from(bytes));
        }
        expect(cutter.position).toEqual(at);
      }),
    );
  });
});

describe('the marks of a log', () => {
  const keys = new LogKeys('/tenure');
  const log = hexDigits(32);

  test('decode as encoded', () => {
    const snapshot = plain({
      position,
      id: hexDigits(32),
      bytes: u48,
      partBytes: fc.integer({ min: 1, max: 2 ** 32 }),
      sha256: hexDigits(64),
    });
    fc.assert(
      fc.property(log, mark, snapshot, (whose, one, other) => {
        expect(decodeMark('head', keys.head, encodeMark('head', whose, one))).toEqual({ ...one, log: whose });
        const encoded = encodeSnapshotMark(whose, other);
        expect(decodeSnapshotMark(keys.snapshot, encoded)).toEqual({ ...other, log: whose });
      }),
    );
  });

  test('in any other form are refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.string().map(Buffer.from)), (value) => {
        expect(() => decodeMark('base', keys.base, value)).toThrow(EngineError);
        expect(() => decodeSnapshotMark(keys.snapshot, value)).toThrow(EngineError);
      }),
    );
    const head = encodeMark('head', 'a'.repeat(32), { position: { index: 1, hash: 'b'.repeat(32) }, bytesBefore: 0 });
    expect(() => decodeMark('base', keys.base, head)).toThrow(expect.objectContaining({ code: 'unusable' }));
  });
});

describe('the keys of a log', () => {
  const keys = new LogKeys('tenure//');

  test('sort as their indexes do, and contain them', () => {
    fc.assert(
      fc.property(u48, u48, (one, other) => {
        const order = Math.sign(Buffer.compare(keys.record(one), keys.record(other)));
        expect(order).toBe(Math.sign(one - other));
        expect(keys.recordIndex(keys.record(one))).toBe(one);
      }),
    );
  });

  test('are under the prefix and in their ranges, and in no other', () => {
    fc.assert(
      fc.property(u48, fc.nat(1000), hexDigits(32), (index, number, id) => {
        const lies = (key: Buffer, { key: from, rangeEnd }: { key: Buffer; rangeEnd: Buffer }): boolean =>
          Buffer.compare(from, key) <= 0 && Buffer.compare(key, rangeEnd) < 0;
        const [part, snap] = [keys.part(index, id, number), keys.snapshotPart(index, id, number)];
        for (const key of [keys.head, keys.base, keys.snapshot, keys.record(index), part, snap]) {
          expect(key.toString().startsWith('tenure/')).toBe(true);
          expect(lies(key, keys.everything)).toBe(true);
        }
        expect(lies(part, keys.parts(index, id))).toBe(true);
        expect(lies(part, keys.partsBefore(index + 1))).toBe(true);
        expect(lies(part, keys.partsBefore(index))).toBe(false);
        expect(lies(snap, keys.snapshotParts(index, id))).toBe(true);
        expect(lies(snap, keys.allSnapshotParts)).toBe(true);
        expect(lies(keys.record(index), keys.recordsFrom(index))).toBe(true);
        expect(lies(part, keys.recordsFrom(0))).toBe(false);
        expect(lies(keys.record(index), keys.recordsUpTo(index))).toBe(true);
        expect(index === 0 || !lies(keys.record(index), keys.recordsUpTo(index - 1))).toBe(true);
      }),
    );
  });

  test('find the logs that would contain them', () => {
    const above = (prefix: string): string[] => new LogKeys(prefix).headsAbove.map(String);
    expect(above('/a')).toEqual([]);
    expect(above('/a/b/c')).toEqual(['/a/head', '/a/b/head']);
    expect(above('a/b')).toEqual(['a/head']);
    expect(above('a/b/c')).toEqual(['a/head', 'a/b/head']);
  });
});
