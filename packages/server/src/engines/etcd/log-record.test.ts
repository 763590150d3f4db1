import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import { framesOf } from './frames.ts';
import { LogKeys } from './log-keys.ts';
import { decodeMark, decodeSnapshotMark, encodeMark, encodeSnapshotMark } from './log-mark.ts';
import { BodyCutter, decodeRecord, encodeRecord } from './log-record.ts';
import type { LogRecord } from './log-record.ts';

const hexDigits = (digits: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: digits / 2, maxLength: digits / 2 }).map((bytes) => Buffer.from(bytes).toString('hex'));
/** With the prototype that literals have, so that they compare as equal. */
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
  test('reads as it was written', () => {
    fc.assert(
      fc.property(fc.oneof(inline, inParts), (record) => {
        assert.deepEqual(decodeRecord(encodeRecord(record)), record);
      }),
    );
  });

  test('that is cut short, or of another format, is none', () => {
    fc.assert(
      fc.property(fc.oneof(inline, inParts), fc.nat(), (record, where) => {
        const value = encodeRecord(record);
        assert.equal(decodeRecord(value.subarray(0, where % value.length)), undefined);
        value[0] = 2;
        assert.equal(decodeRecord(value), undefined);
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
          assert.deepEqual(cut[number]!.position, at);
          assert.deepEqual(Buffer.from(cut[number]!.bytes), Buffer.from(bytes));
        }
        assert.deepEqual(cutter.position, at);
      }),
    );
  });
});

describe('the marks of a log', () => {
  const keys = new LogKeys('/tenure');
  const log = hexDigits(32);

  test('read as they were written', () => {
    const snapshot = plain({
      position,
      id: hexDigits(32),
      bytes: u48,
      partBytes: fc.integer({ min: 1, max: 2 ** 32 }),
      sha256: hexDigits(64),
    });
    fc.assert(
      fc.property(log, mark, snapshot, (whose, one, other) => {
        assert.deepEqual(decodeMark('head', keys.head, encodeMark('head', whose, one)), { ...one, log: whose });
        const encoded = encodeSnapshotMark(whose, other);
        assert.deepEqual(decodeSnapshotMark(keys.snapshot, encoded), { ...other, log: whose });
      }),
    );
  });

  test('that are anything else are refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.string().map(Buffer.from)), (value) => {
        assert.throws(() => decodeMark('base', keys.base, value), EngineError);
        assert.throws(() => decodeSnapshotMark(keys.snapshot, value), EngineError);
      }),
    );
    const head = encodeMark('head', 'a'.repeat(32), { position: { index: 1, hash: 'b'.repeat(32) }, bytesBefore: 0 });
    assert.throws(() => decodeMark('base', keys.base, head), { code: 'unusable' });
  });
});

describe('the keys of a log', () => {
  const keys = new LogKeys('tenure//');

  test('sort as their indexes do, and tell them', () => {
    fc.assert(
      fc.property(u48, u48, (one, other) => {
        const order = Math.sign(Buffer.compare(keys.record(one), keys.record(other)));
        assert.equal(order, Math.sign(one - other));
        assert.equal(keys.recordIndex(keys.record(one)), one);
      }),
    );
  });

  test('lie under the prefix and in their ranges, and in no other', () => {
    fc.assert(
      fc.property(u48, fc.nat(1000), hexDigits(32), (index, number, id) => {
        const lies = (key: Buffer, { key: from, rangeEnd }: { key: Buffer; rangeEnd: Buffer }): boolean =>
          Buffer.compare(from, key) <= 0 && Buffer.compare(key, rangeEnd) < 0;
        const [part, snap] = [keys.part(index, id, number), keys.snapshotPart(index, id, number)];
        for (const key of [keys.head, keys.base, keys.snapshot, keys.record(index), part, snap]) {
          assert.ok(key.toString().startsWith('tenure/'));
          assert.ok(lies(key, keys.everything));
        }
        assert.ok(lies(part, keys.parts(index, id)) && lies(part, keys.partsBefore(index + 1)));
        assert.ok(!lies(part, keys.partsBefore(index)));
        assert.ok(lies(snap, keys.snapshotParts(index, id)) && lies(snap, keys.allSnapshotParts));
        assert.ok(lies(keys.record(index), keys.recordsFrom(index)) && !lies(part, keys.recordsFrom(0)));
        assert.ok(lies(keys.record(index), keys.recordsUpTo(index)));
        assert.ok(index === 0 || !lies(keys.record(index), keys.recordsUpTo(index - 1)));
      }),
    );
  });

  test('know the logs that they would lie in', () => {
    const above = (prefix: string): string[] => new LogKeys(prefix).headsAbove.map(String);
    assert.deepEqual(above('/a'), []);
    assert.deepEqual(above('/a/b/c'), ['/a/head', '/a/b/head']);
    assert.deepEqual(above('a/b'), ['a/head']);
    assert.deepEqual(above('a/b/c'), ['a/head', 'a/b/head']);
  });
});
