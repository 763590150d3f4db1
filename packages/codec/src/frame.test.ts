import { create } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { DecodeError } from './decode-error.ts';
import { decodeMessage, decodeRequest, encodeFramed, frameHeadroomBytes } from './frame.ts';
import { etcdserverpb } from '@tenure/protocol';

const { MemberAddRequestSchema, MemberSchema, StatusResponseSchema, WatchRequestSchema } = etcdserverpb;

const manyBytes = 1_500_000;

function many(...field: number[]): Buffer {
  return Buffer.alloc(manyBytes, Buffer.from(field));
}

/** A field whose content is shorter than 2^21 bytes. */
function delimited(tag: number, content: Buffer): Buffer {
  const { length } = content;
  return Buffer.concat([Buffer.of(tag, (length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14), content]);
}

describe('generated messages in frames', () => {
  test('are written after the headroom and read back', () => {
    const status = create(StatusResponseSchema, { version: '3.6.0', dbSize: -1n, leader: 2n ** 64n - 1n });
    const framed = encodeFramed(StatusResponseSchema, status);
    expect(decodeMessage(StatusResponseSchema, framed.subarray(frameHeadroomBytes))).toEqual(status);
  });

  test('drop the fields that they do not know', () => {
    const status = encodeFramed(StatusResponseSchema, create(StatusResponseSchema, { tenureVersion: '1' }));
    expect(decodeMessage(MemberSchema, status.subarray(frameHeadroomBytes))).toEqual(create(MemberSchema));
  });

  test('are refused with a DecodeError that names its cause', () => {
    const name = Buffer.from([0x12, 0x02, 0x61]);
    expect(() => decodeMessage(MemberSchema, name)).toThrow(DecodeError);
    expect(() => decodeMessage(MemberSchema, Buffer.from([0x12, 0x01, 0xff]))).toThrow(new DecodeError('Malformed'));
    const deepGroups = Buffer.alloc(100_000, 0x7b);
    expect(() => decodeMessage(MemberSchema, deepGroups)).toThrow('proto: exceeded max recursion depth');
  });

  test.each([
    ['that are not known', MemberAddRequestSchema, many(0x78, 1)],
    ['in groups', MemberAddRequestSchema, many(0x7b, 0x7c)],
    ['in one group', MemberAddRequestSchema, Buffer.concat([Buffer.of(0x7b), many(0x78, 1), Buffer.of(0x7c)])],
    ['that are known', MemberAddRequestSchema, many(0x0a, 0)],
    ['of a nested message', WatchRequestSchema, delimited(0x0a, many(0x78, 1))],
    ['that are packed', WatchRequestSchema, delimited(0x0a, delimited(0x2a, many(0)))],
  ])('are refused in a request with very many fields %s', (_, schema, bytes) => {
    expect(() => decodeRequest(schema, bytes)).toThrow(new DecodeError('TooManyFields'));
  });

  test('are read from a request with as many fields as a client may have a use for', () => {
    const peerURLs = Array.from({ length: 10_000 }, (_, at) => `http://${at}:1`);
    const framed = encodeFramed(MemberAddRequestSchema, create(MemberAddRequestSchema, { peerURLs }));
    expect(decodeRequest(MemberAddRequestSchema, framed.subarray(frameHeadroomBytes)).peerURLs).toEqual(peerURLs);
  });
});
