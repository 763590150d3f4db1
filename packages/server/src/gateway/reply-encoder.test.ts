import { create, toBinary, toJson } from '@bufbuild/protobuf';
import { etcdserverpb, rpcMethods } from '@tenure/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReplyEncoder } from './reply-encoder.ts';
import { drawnMessage } from './testing/drawn-message.ts';

const outputs = [...new Set([...rpcMethods.values()].map(({ descriptor }) => descriptor.output))];

/** The JSON of a message that arrives in pieces of these lengths, the last of them repeated. */
function inPieces(descriptor: (typeof outputs)[number], bytes: Buffer, lengths: readonly number[]): string {
  const encoder = new ReplyEncoder(descriptor, bytes.length);
  let text = bytes.length === 0 ? encoder.push(bytes) : '';
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[Math.min(i, lengths.length - 1)] ?? 1;
    text += encoder.push(bytes.subarray(at, at + length));
    at += length;
  }
  return text;
}

describe.each(outputs.map((output) => [output.typeName, output] as const))('%s', (_name, output) => {
  test('is the JSON of protobuf, with the names of the .proto file, however it is cut', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(drawnMessage(output), lengths, ({ message }, cuts) => {
        const bytes = Buffer.from(toBinary(output, message));
        const json = inPieces(output, bytes, cuts);
        expect(JSON.parse(json)).toEqual(toJson(output, message, { useProtoFieldName: true }));
        expect(json).toBe(ReplyEncoder.encode(output, bytes));
      }),
      { numRuns: 30 },
    );
  });
});

const range = etcdserverpb.RangeResponseSchema;

test('the text has no spaces, fields in the order of their numbers, and bytes in base64', () => {
  const header = { clusterId: 2n ** 64n - 1n, revision: -1n };
  const kvs = [{ key: Buffer.from('a?>'), value: Buffer.from([0xfb, 0xff]), lease: 7n }, {}];
  const bytes = toBinary(range, create(range, { header, kvs, more: true }));
  expect(ReplyEncoder.encode(range, Buffer.from(bytes))).toBe(
    '{"header":{"cluster_id":"18446744073709551615","revision":"-1"},' +
      '"kvs":[{"key":"YT8+","value":"+/8=","lease":"7"},{}],"more":true}',
  );
});

test('a field that the descriptor does not have is left out', () => {
  // Field 99: a number, bytes, and both fixed sizes; then `more`.
  const unknown = [0x98, 6, 1, 0x9a, 6, 2, 1, 2, 0x99, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0x9d, 6, 1, 2, 3, 4];
  const bytes = Buffer.from([...unknown, 0x18, 1]);
  expect(ReplyEncoder.encode(range, bytes)).toBe('{"more":true}');
  expect(inPieces(range, bytes, [1])).toBe('{"more":true}');
});

test('a malformed reply throws', () => {
  expect(() => ReplyEncoder.encode(range, Buffer.from([0x1f, 1]))).toThrow('wire type');
  expect(() => ReplyEncoder.encode(range, Buffer.from([0x0a, 1, 0x18, 1]))).toThrow('longer than');
  expect(() => ReplyEncoder.encode(range, Buffer.alloc(11, 0xff))).toThrow('more than ten bytes');
});
