import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { tenureLog } from '@tenure/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DecodeError } from './decode-error.ts';
import { decodeRequestedCommand, encodeRequestedCommand } from './requested-command.ts';

const schema = tenureLog.RequestedSchema;

const requested = fc.record({
  user: fc.string({ unit: 'binary' }),
  authRevision: fc.maxSafeInteger(),
  kind: fc.nat(1_000),
  payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
});

describe('a command with its requester', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(requested, (command) => {
        const bytes = encodeRequestedCommand(command);
        const message = create(schema, { ...command, authRevision: BigInt(command.authRevision) });
        expect(bytes).toEqual(Buffer.from(toBinary(schema, message)));
        expect(decodeRequestedCommand(bytes)).toEqual(command);
      }),
    );
  });

  test('is read with unknown fields beside it, and its payload is not copied', () => {
    const bytes = Buffer.concat([
      encodeRequestedCommand({ user: 'ann', authRevision: 7, kind: 1, payload: Buffer.from('put') }),
      Buffer.from([0x38, 1]),
    ]);
    expect(decodeRequestedCommand(bytes)).toMatchObject({ user: 'ann', authRevision: 7, kind: 1 });
    expect(decodeRequestedCommand(bytes).payload.buffer).toBe(bytes.buffer);
  });

  test('that was cut, or whose fields have other types, is refused or reads as the generated codec reads it', () => {
    const whole = encodeRequestedCommand({ user: 'ann', authRevision: 7, kind: 1, payload: Buffer.from('put') });
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        for (const bytes of [whole.subarray(0, at), Buffer.from(whole).fill(byte, at, at + 1)]) {
          try {
            const { user, authRevision, kind, payload } = decodeRequestedCommand(bytes);
            const read = fromBinary(schema, bytes);
            expect({ user, authRevision: BigInt(authRevision), kind }).toEqual({
              user: read.user,
              authRevision: read.authRevision,
              kind: read.kind,
            });
            expect(payload).toEqual(Buffer.from(read.payload));
          } catch (error) {
            expect(error).toBeInstanceOf(DecodeError);
          }
        }
      }),
    );
  });
});
