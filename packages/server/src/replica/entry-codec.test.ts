import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEntry, encodeEntry } from './entry-codec.ts';

const whole = fc.maxSafeNat();
const command = fc.record(
  {
    kind: fc.nat(300),
    payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    origin: fc.record({ run: fc.nat(2 ** 32 - 1), sequence: whole }),
  },
  { requiredKeys: ['kind', 'payload'] },
);

describe('entries of the log', () => {
  test('come back as they were written', () => {
    fc.assert(
      fc.property(whole, whole, fc.array(command, { maxLength: 20 }), (epoch, timeMs, commands) => {
        const decoded = decodeEntry(encodeEntry({ epoch, timeMs }, commands));
        expect(decoded.headers).toEqual({ epoch, timeMs });
        expect(decoded.commands.map(({ kind, payload, origin }) => [kind, [...payload], origin])).toEqual(
          commands.map(({ kind, payload, origin }) => [kind, [...payload], origin]),
        );
      }),
    );
  });

  test('may carry a header that this version does not know', () => {
    const known = encodeEntry({ epoch: 3, timeMs: 5 }, []);
    const name = Buffer.from('later', 'latin1');
    // The same entry with a third header in front of the two.
    const extended = Buffer.concat([Buffer.from([1, 3, name.length]), name, Buffer.from([42]), known.subarray(2)]);
    expect(decodeEntry(extended).headers).toEqual({ epoch: 3, timeMs: 5 });
  });

  test('stop the server when they are of another format, or cut short', () => {
    const bytes = encodeEntry({ epoch: 1, timeMs: 2 }, [{ kind: 1, payload: Buffer.from('abc') }]);
    expect(() => decodeEntry(Buffer.concat([Buffer.from([2]), bytes.subarray(1)]))).toThrow(/format 2/);
    for (let length = 1; length < bytes.length; length += 1) {
      expect(() => decodeEntry(bytes.subarray(0, length))).toThrow(/entry of the log/);
    }
  });
});
