import { type DescMessage, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { etcdserverpb, rpcMethods } from '@tenure/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DecodedRequest, RequestDecoder } from './request-decoder.ts';
import { SyntaxFault } from './syntax-fault.ts';
import { drawnMessage } from './testing/drawn-message.ts';

const maxMessageBytes = 1024 * 1024;
const inputs = [...new Set([...rpcMethods.values()].map(({ descriptor }) => descriptor.input))];
const put = etcdserverpb.PutRequestSchema;
const range = etcdserverpb.RangeRequestSchema;
const txn = etcdserverpb.TxnRequestSchema;

/** Every message of a text that arrives in chunks of this many bytes. */
function decodedAll(descriptor: DescMessage, json: string | Buffer, chunkBytes = 7, max = maxMessageBytes) {
  const decoder = new RequestDecoder(descriptor, max);
  const bytes = Buffer.from(json);
  const found: DecodedRequest[] = [];
  for (let at = 0; at < bytes.length;) {
    const chunk = bytes.subarray(at, at + chunkBytes);
    // What a chunk holds after the end of a message belongs to the next.
    at += decoder.read(chunk);
    if (decoder.isDone) found.push(decoder.take());
  }
  if (decoder.finish()) found.push(decoder.take());
  return found;
}

/** The first message; nothing is an empty one. */
function decoded(descriptor: DescMessage, json: string | Buffer, chunkBytes?: number): Buffer {
  const [first] = decodedAll(descriptor, json, chunkBytes);
  if (first?.kind === 'tooLarge') throw new Error(`${first.bytes} bytes`);
  return first?.bytes ?? Buffer.alloc(0);
}

function fault(descriptor: DescMessage, json: string | Buffer): string {
  const texts = [1, 5, 10_000].map((chunkBytes) => {
    try {
      decoded(descriptor, json, chunkBytes);
      return 'none';
    } catch (error) {
      if (error instanceof SyntaxFault) return error.message;
      throw error;
    }
  });
  expect(new Set(texts).size).toBe(1);
  return texts[0] ?? '';
}

describe.each(inputs.map((input) => [input.typeName, input] as const))('%s', (_name, input) => {
  test('is read back from its JSON, with both kinds of names, in chunks of any size', () => {
    fc.assert(
      fc.property(drawnMessage(input), fc.boolean(), fc.nat({ max: 40 }), ({ message }, useProtoFieldName, more) => {
        const json = JSON.stringify(toJson(input, message, { useProtoFieldName }), null, more % 3);
        const read = decoded(input, json, 1 + more);
        expect(toJson(input, fromBinary(input, read))).toEqual(toJson(input, message));
        expect(read.length).toBe(toBinary(input, message).length);
      }),
      { numRuns: 30 },
    );
  });
});

test('no bytes at all make it fail in a way that has no text', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\\',
    'u',
    'd8',
    '00',
    '"key"',
    '"lease"',
    '1',
    '-',
    'e',
  );
  const text = fc.array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 2 })), { maxLength: 30 });
  fc.assert(
    fc.property(text, (parts) => {
      fault(txn, parts.join(''));
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{"key":"Zm-_"}', { key: Buffer.from('fo\u00bf'.slice(0, 2)) }],
  ['{"value":null,"key":"YQ"}', { key: Buffer.from('a') }],
  ['{"prevKv":true,"lease":"1e2"}', { prevKv: true, lease: 100n }],
  ['{"prev_kv":false,"lease":-9223372036854775808}', { lease: -(2n ** 63n) }],
  ['{"lease":20.0e-1}', { lease: 2n }],
  ['{"unknown":[{"x":[1,null]},"y"],"ignore_value":true}', { ignoreValue: true }],
  [String.raw`{"k\u0065y":"Y\u0051=="}`, { key: Buffer.from('a') }],
])('etcd takes %s', (json, expected) => {
  const { key, ...read } = fromBinary(put, decoded(put, json));
  const { key: expectedKey, ...rest } = { key: Buffer.alloc(0), ...expected };
  expect(read).toMatchObject(rest);
  if (!json.includes('-_')) expect(Buffer.from(key)).toEqual(expectedKey);
  else expect(Buffer.from(key).toString('base64')).toBe('Zm+/');
});

test('an enum is read from its name and its number, and an unknown name is ignored', () => {
  const sortOrder = (json: string): number => fromBinary(range, decoded(range, json)).sortOrder;
  expect([sortOrder('{"sort_order":"DESCEND"}'), sortOrder('{"sortOrder":2}')]).toEqual([2, 2]);
  expect([sortOrder('{"sort_order":"X"}'), sortOrder('{"sort_order":77}')]).toEqual([0, 77]);
});

// The texts of etcd 3.6.16.
test.each([
  ['{"key":"Zm9v"', 'unexpected EOF'],
  ['xx', "invalid character 'x' looking for beginning of value"],
  ['{"key":"YQ==","lease":0x1}', "invalid character 'x' after object key:value pair"],
  ['[]', 'proto: syntax error (line 1:1): unexpected token ['],
  ['null', 'proto: syntax error (line 1:1): unexpected token null'],
  ['{"key":"Z"}', 'proto: (line 1:8): invalid value for bytes field key: "Z"'],
  ['{"key":5}', 'proto: (line 1:8): invalid value for bytes field key: 5'],
  ['{"key":"YQ==",\n"lease":1.5}', 'proto: (line 2:9): invalid value for int64 field lease: 1.5'],
  ['{"prevKv":"true"}', 'proto: (line 1:11): invalid value for bool field prevKv: "true"'],
  ['{"prevKv":true,"prev_kv":true}', 'proto: (line 1:16): duplicate field "prev_kv"'],
])('etcd refuses %s', (json, text) => {
  expect(fault(put, json)).toBe(text);
});

test('a second field of a oneof, a null in a list, and an object for a list are refused', () => {
  expect(fault(txn, '{"compare":[{"version":"1","value":"YQ=="}]}')).toBe(
    'proto: (line 1:28): error parsing "value", oneof etcdserverpb.Compare.target_union is already set',
  );
  expect(fault(txn, '{"success":[null]}')).toBe('proto: syntax error (line 1:13): unexpected token null');
  expect(fault(txn, '{"success":{}}')).toBe('proto: syntax error (line 1:12): unexpected token {');
});

test('text that is not UTF-8, and half a surrogate pair, are refused', () => {
  const invalid = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  expect(fault(etcdserverpb.AuthUserAddRequestSchema, invalid)).toContain('invalid UTF-8');
  expect(fault(put, String.raw`{"key":"\ud800","value":""}`)).toContain('invalid escape code');
});

test('messages may follow each other without a separator', () => {
  const found = decodedAll(put, '{"lease":1}{"lease":2} \n{}');
  const leases = found.map((each) => (each.kind === 'message' ? fromBinary(put, each.bytes).lease : undefined));
  expect(leases).toEqual([1n, 2n, 0n]);
});

test('deep values of unknown fields are read to the depth that etcd allows', () => {
  const nested = (depth: number): string => `{"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  expect(decoded(put, nested(9999))).toEqual(Buffer.alloc(0));
  expect(fault(put, nested(10_000))).toBe("invalid character '[' exceeded max depth");
});

test('of a message that is too large only its size is kept', () => {
  const value = Buffer.alloc(900).toString('base64');
  const decoder = new RequestDecoder(put, 1000);
  decoder.read(Buffer.from(`{"key":"${value}","value":"${value}"}`));
  expect(decoder.take()).toEqual({ kind: 'tooLarge', bytes: 2 * (900 + 3) });
  expect(decoder.heldBytes).toBeLessThan(8192);
});

test('a message of exactly the largest size is taken, however its lengths are nested', () => {
  const json = '{"success":[{"request_txn":{"success":[{"request_put":{"key":"YWFhYWFh"}}]}}]}';
  const size = decoded(txn, json).length;
  expect(decodedAll(txn, json, 3, size)[0]).toMatchObject({ kind: 'message' });
  expect(decodedAll(txn, json, 3, size - 1)[0]).toEqual({ kind: 'tooLarge', bytes: size });
});
