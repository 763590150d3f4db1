import fc from 'fast-check';
import type { EncodedField } from '../hpack-encoder.ts';

const octets = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength, size: 'max' }).map((bytes) => Buffer.from(bytes).toString('latin1'));

const printable = fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789-_/:. '), maxLength: 200 });

/** Any octets, and what headers have mostly. */
export const text: fc.Arbitrary<string> = fc.oneof(printable, octets(40), octets(400));

/** Few names and values, so that the tables are hit, and some that no table has. */
const name = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(':method', ':path', ':status', 'content-type', 'te', 'x-a', 'x-b', 'grpc-status'),
  },
  { weight: 1, arbitrary: text },
);
const value = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('', 'GET', 'POST', '200', '/', 'trailers', 'application/grpc', '0', 'a'.repeat(90)),
  },
  { weight: 2, arbitrary: text },
);

const field: fc.Arbitrary<EncodedField> = fc.tuple(
  name,
  value,
  fc.constantFrom('index' as const, 'index' as const, 'plain' as const, 'never' as const),
);

export const block: fc.Arbitrary<readonly EncodedField[]> = fc.array(field, { maxLength: 30, size: 'max' });
