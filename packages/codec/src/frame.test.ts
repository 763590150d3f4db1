import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { DecodeError } from './decode-error.ts';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from './frame.ts';
import { etcdserverpb } from '@tenure/protocol';

const { MemberSchema, StatusResponseSchema } = etcdserverpb;

describe('generated messages in frames', () => {
  it('are written behind headroom and read back', () => {
    const status = create(StatusResponseSchema, { version: '3.6.0', dbSize: -1n, leader: 2n ** 64n - 1n });
    const framed = encodeFramed(StatusResponseSchema, status);
    expect(decodeMessage(StatusResponseSchema, framed.subarray(frameHeadroomBytes))).toEqual(status);
  });

  it('drop the fields that they do not know', () => {
    const status = encodeFramed(StatusResponseSchema, create(StatusResponseSchema, { tenureVersion: '1' }));
    expect(decodeMessage(MemberSchema, status.subarray(frameHeadroomBytes))).toEqual(create(MemberSchema));
  });

  it('are refused with a DecodeError that names its cause', () => {
    const name = Buffer.from([0x12, 0x02, 0x61]);
    expect(() => decodeMessage(MemberSchema, name)).toThrow(DecodeError);
    expect(() => decodeMessage(MemberSchema, Buffer.from([0x12, 0x01, 0xff]))).toThrow(new DecodeError('Malformed'));
    const deepGroups = Buffer.alloc(100_000, 0x7b);
    expect(() => decodeMessage(MemberSchema, deepGroups)).toThrow('proto: exceeded max recursion depth');
  });
});
