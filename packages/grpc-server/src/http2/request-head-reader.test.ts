import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EncodedField, HpackEncoder } from '../hpack/hpack-encoder.ts';
import { RequestHeadReader } from './request-head-reader.ts';
import { testLimits } from './testing/session-server.ts';

const pseudo: readonly EncodedField[] = [
  [':method', 'POST', 'index'],
  [':scheme', 'http', 'index'],
  [':path', '/t.T/Any', 'index'],
  [':authority', 'localhost', 'index'],
];

/** The decoding of a block within other bytes, as frames lie in what a socket delivers. */
function read(reader: RequestHeadReader, block: Buffer, areTrailers = false): ReturnType<RequestHeadReader['request']> {
  const bytes = Buffer.concat([Buffer.alloc(9, 0xff), block, Buffer.alloc(9, 0xff)]);
  const end = 9 + block.length;
  return areTrailers ? reader.trailers(bytes, 9, end) : reader.request(bytes, 9, end);
}

describe('the same block', () => {
  test('gives the same object while the table stays, and remembers the meaning given to it', () => {
    const encoder = new HpackEncoder();
    const reader = new RequestHeadReader(testLimits);
    read(reader, Buffer.from(encoder.encode(pseudo)));
    const block = Buffer.from(encoder.encode(pseudo));
    const head = read(reader, block);
    head.meaning = 'known';
    expect(read(reader, block)).toBe(head);
    expect(read(reader, block).meaning).toBe('known');
  });

  test('means something else after the table has changed', () => {
    const encoder = new HpackEncoder();
    const reader = new RequestHeadReader(testLimits);
    const withToken = (token: string): readonly EncodedField[] => [...pseudo, ['x-token', token, 'index']];
    read(reader, Buffer.from(encoder.encode(withToken('one'))));
    // The newest entry of the table is the token: 62 in both blocks.
    const block = Buffer.from(encoder.encode(withToken('one')));
    const first = read(reader, block);
    expect(first.headers['x-token']).toBe('one');
    read(reader, Buffer.from(new HpackEncoder().encode(withToken('two'))));
    expect(read(reader, block).headers['x-token']).toBe('two');
    expect(first.headers['x-token']).toBe('one');
  });

  test('is forgotten when trailers change the table', () => {
    const encoder = new HpackEncoder();
    const reader = new RequestHeadReader(testLimits);
    read(reader, Buffer.from(encoder.encode(pseudo)));
    const block = Buffer.from(encoder.encode(pseudo));
    const head = read(reader, block);
    read(reader, Buffer.from(encoder.encode([['x-late', '1', 'index']])), true);
    expect(read(reader, block)).not.toBe(head);
  });
});

test('a reader that remembers reads as one that has never seen the block', () => {
  const name = fc.constantFrom('x-a', 'x-b', 'te', 'content-length', 'UPPER', 'connection');
  const value = fc.constantFrom('', '1', 'trailers', 'v'.repeat(60), 'w'.repeat(2000), '\n');
  const mode = fc.constantFrom('index' as const, 'index' as const, 'plain' as const, 'never' as const);
  const fields = fc.array(fc.tuple(name, value, mode), { maxLength: 4 });
  const call = fc.record({ fields, times: fc.integer({ min: 1, max: 4 }), areTrailers: fc.boolean() });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 20 }), (calls) => {
      const encoder = new HpackEncoder();
      const reader = new RequestHeadReader(testLimits);
      const blocks: [Buffer, boolean][] = [];
      for (const { fields: more, times, areTrailers } of calls) {
        for (let i = 0; i < times; i++) {
          const block = Buffer.from(encoder.encode(areTrailers ? more : [...pseudo, ...more]));
          blocks.push([block, areTrailers]);
          const head = read(reader, block, areTrailers);
          // A second reader has seen the same blocks, but remembers none: each is read as trailers before.
          const fresh = new RequestHeadReader(testLimits);
          for (const [earlier] of blocks.slice(0, -1)) read(fresh, earlier, true);
          const expected = read(fresh, block, areTrailers);
          expect({ ...head, headers: { ...head.headers } }).toEqual({ ...expected, headers: { ...expected.headers } });
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('headers beyond the limits are too large, and the table goes on', () => {
  const encoder = new HpackEncoder();
  const reader = new RequestHeadReader({ ...testLimits, maxHeaderBytes: 1000 });
  const large = read(reader, Buffer.from(encoder.encode([...pseudo, ['x', 'y'.repeat(1000), 'index']])));
  expect(large.isTooLarge).toBe(true);
  expect(read(reader, Buffer.from(encoder.encode(pseudo)))).toMatchObject({ isTooLarge: false, fault: undefined });
});

test('the length of a body is that of its header', () => {
  const reader = new RequestHeadReader(testLimits);
  const bodyBytesOf = (value: string): number =>
    read(reader, Buffer.from(new HpackEncoder().encode([...pseudo, ['content-length', value, 'plain']]))).bodyBytes;
  expect(bodyBytesOf('17')).toBe(17);
  expect(bodyBytesOf('seventeen')).toBe(-1);
});

test('headers cannot be changed: other requests have the same', () => {
  const reader = new RequestHeadReader(testLimits);
  const { headers } = read(reader, Buffer.from(new HpackEncoder().encode(pseudo)));
  expect(() => (headers['x-more'] = '1')).toThrow(TypeError);
});
