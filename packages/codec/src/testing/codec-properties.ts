import { type DescMessage, type MessageShape, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, inject } from 'vitest';
import { DecodeError } from '../decode-error.ts';
import { frameHeadroomBytes } from '../frame.ts';
import { strictlyValid } from './strict-validity.ts';
import { damagedSoup, wireSoup } from './wire-soup.ts';

/** One message in both codecs. */
export interface DecoderUnderTest<Desc extends DescMessage, Shape> {
  readonly schema: Desc;
  readonly decode: (bytes: Buffer) => Shape;
  readonly shape: (message: MessageShape<Desc>) => Shape;
}

const runs = {
  commit: { valid: 100, damaged: 400 },
  ci: { valid: 400, damaged: 1_500 },
  soak: { valid: 10_000, damaged: 50_000 },
}[inject('effort')];

/** The decoder reads every valid message as the generated one does, for any surrounding memory. */
export function readsWhatTheGeneratedReads<Desc extends DescMessage, Shape>(
  codec: DecoderUnderTest<Desc, Shape>,
): void {
  fc.assert(
    fc.property(wireSoup(codec.schema), (bytes) => {
      const surrounded = Buffer.concat([Buffer.alloc(3, 0xff), bytes, Buffer.alloc(3, 0xff)]);
      const inside = surrounded.subarray(3, 3 + bytes.length);
      expect(codec.decode(inside)).toEqual(codec.shape(fromBinary(codec.schema, bytes)));
    }),
    { numRuns: runs.valid },
  );
}

function attempt<T>(action: () => T): T | Error {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return error;
  }
}

/**
 * Damaged bytes are refused with a DecodeError exactly when they are not a valid message, and accepted bytes are read
 * as the generated codec reads them. (That one accepts more: it checks neither wire types nor the ends of nested
 * messages.)
 */
export function refusesExactlyWhatIsInvalid<Desc extends DescMessage, Shape>(
  codec: DecoderUnderTest<Desc, Shape>,
): void {
  fc.assert(
    fc.property(damagedSoup(codec.schema), (bytes) => {
      const read = attempt(() => codec.decode(bytes));
      if (!strictlyValid(codec.schema, bytes)) expect(read).toBeInstanceOf(DecodeError);
      else expect(read).toEqual(codec.shape(fromBinary(codec.schema, bytes)));
    }),
    { numRuns: runs.damaged },
  );
}

/**
 * The encoded message equals, byte for byte, the output of the generated codec, after its headroom and in a buffer of
 * its size.
 */
export function expectSameBytes<Desc extends DescMessage>(
  framed: Buffer,
  schema: Desc,
  message: MessageShape<Desc>,
): void {
  expect(framed.subarray(frameHeadroomBytes).toString('hex')).toBe(
    Buffer.from(toBinary(schema, message)).toString('hex'),
  );
}
