import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeGrpcMessage } from './grpc-message.ts';

test('an encoded text is printable ASCII and decodes to the original', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (text) => {
      const encoded = encodeGrpcMessage(text);
      if (!/^[\x20-\x7e]*$/.test(encoded) || decodeURIComponent(encoded) !== text) expect.fail(text);
    }),
    { numRuns: 50 },
  );
});

test('plain text is unchanged, and a lone surrogate becomes the replacement character', () => {
  expect(encodeGrpcMessage('etcdserver: key not found')).toBe('etcdserver: key not found');
  expect(encodeGrpcMessage('100% \n')).toBe('100%25 %0A');
  expect(encodeGrpcMessage('\ud800')).toBe('%EF%BF%BD');
});
