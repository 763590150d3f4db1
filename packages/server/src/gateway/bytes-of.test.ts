import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bytesOf } from './bytes-of.ts';

test('either alphabet, with and without padding, is read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 30 }), (bytes) => {
      const expected = Buffer.from(bytes);
      const standard = expected.toString('base64');
      const url = expected.toString('base64url');
      const paddedUrl = standard.replaceAll('+', '-').replaceAll('/', '_');
      for (const text of [standard, standard.replace(/=+$/, ''), url, paddedUrl]) {
        expect(bytesOf(Buffer.from(text))).toEqual(expected);
      }
    }),
  );
});

test.each(['Z', '+_==', 'a', 'YQ=', 'Y===', 'YQ==YQ==', 'Y Q=', 'YWFh=', '====', 'YQ\u00e9='])(
  '%j is not base64',
  (text) => {
    expect(bytesOf(Buffer.from(text))).toBe(undefined);
  },
);
