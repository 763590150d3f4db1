import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  expectSameBytes,
  readsWhatTheGeneratedReads,
  refusesExactlyWhatIsInvalid,
} from './testing/codec-properties.ts';
import { headerInBothForms } from './testing/headers.ts';
import { putResponseMessage } from './testing/generated-replies.ts';
import { putMessage, putShape } from './testing/generated-requests.ts';
import { putRequest, putResult } from './testing/shape-arbitraries.ts';
import { DecodeError } from './decode-error.ts';
import { frameHeadroomBytes } from './frame.ts';
import {
  decodePutRequest,
  encodePutRequest,
  encodePutResponse,
  encodePutResponseWithin,
  putRequestSize,
  writePutRequest,
} from './put.ts';
import { etcdserverpb } from '@tenure/protocol';

const { PutRequestSchema, PutResponseSchema } = etcdserverpb;

const codec = { schema: PutRequestSchema, decode: decodePutRequest, shape: putShape };

describe('a put request', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(putRequest, (put) => {
        const framed = encodePutRequest(put);
        expectSameBytes(framed, PutRequestSchema, putMessage(put));
        expect(decodePutRequest(framed, frameHeadroomBytes)).toEqual(put);
      }),
    );
  });

  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));

  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));

  test('can be written and read in the middle of a buffer', () => {
    fc.assert(
      fc.property(putRequest, fc.nat(20), (put, start) => {
        const size = putRequestSize(put);
        const out = Buffer.alloc(start + size + 7, 0xaa);
        const end = writePutRequest(out, start, put);
        expect(end).toBe(start + size);
        expect(out.subarray(end)).toEqual(Buffer.alloc(7, 0xaa));
        expect(decodePutRequest(out, start, end)).toEqual(put);
      }),
    );
  });

  test('is refused when it is cut off anywhere inside a field', () => {
    const bytes = encodePutRequest({
      key: 'a key',
      value: 'a value',
      lease: -1n,
      prevKv: true,
      ignoreValue: false,
      ignoreLease: false,
    }).subarray(frameHeadroomBytes);
    const whole = new Set([0, 7, 16, 27, bytes.length]);
    for (let length = 0; length <= bytes.length; length++) {
      const read = (): unknown => decodePutRequest(bytes.subarray(0, length));
      if (whole.has(length)) expect(read()).toBeDefined();
      else expect(read).toThrow(DecodeError);
    }
  });
});

describe('the reply to a put', () => {
  test('is written as the generated codec writes it', () => {
    fc.assert(
      fc.property(headerInBothForms, putResult, ({ header, message }, result) => {
        const framed = encodePutResponse(header, result);
        const bytes = framed.length - frameHeadroomBytes;
        expect(encodePutResponseWithin(header, result, bytes)).toHaveLength(framed.length);
        expect(encodePutResponseWithin(header, result, bytes - 1)).toBe(bytes);
        expectSameBytes(framed, PutResponseSchema, putResponseMessage(message, result));
      }),
    );
  });
});
