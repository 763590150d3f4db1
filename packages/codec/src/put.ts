import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { keyValueFieldSize, writeKeyValueField } from './key-value.ts';
import { type ResponseHeader, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { PutRequest, PutResult } from '@tenure/core';
import type { Mutable } from './mutable.ts';
import { WireReader } from './wire-reader.ts';
import {
  bigIntFieldSize,
  boolFieldSize,
  latin1FieldSize,
  writeBigIntField,
  writeBoolField,
  writeLatin1Field,
} from './wire-write.ts';

const requestFields = [1, 2, 3, 4, 5, 6];

export function emptyPutRequest(): Mutable<PutRequest> {
  return { key: '', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
}

/** Reads to the reader's end into `put`: absent fields keep their values, as in a merge of two messages. */
export function readPutRequest(reader: WireReader, put: Mutable<PutRequest>): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        put.key = reader.latin1();
        break;
      case 0x12:
        put.value = reader.latin1();
        break;
      case 0x18:
        put.lease = reader.bigInt64();
        break;
      case 0x20:
        put.prevKv = reader.bool();
        break;
      case 0x28:
        put.ignoreValue = reader.bool();
        break;
      case 0x30:
        put.ignoreLease = reader.bool();
        break;
      default:
        reader.skipUnknown(tag, requestFields);
    }
  }
}

/** Reads the message in [start, end). Throws DecodeError. */
export function decodePutRequest(bytes: Buffer, start = 0, end = bytes.length): PutRequest {
  const put = emptyPutRequest();
  readPutRequest(new WireReader(bytes, start, end), put);
  return put;
}

/** In bytes, without headroom. */
export function putRequestSize(put: PutRequest): number {
  return (
    latin1FieldSize(1, put.key) +
    latin1FieldSize(1, put.value) +
    bigIntFieldSize(1, put.lease) +
    boolFieldSize(1, put.prevKv) +
    boolFieldSize(1, put.ignoreValue) +
    boolFieldSize(1, put.ignoreLease)
  );
}

/** Writes `putRequestSize(put)` bytes at `at` and returns the position after them. */
export function writePutRequest(out: Buffer, at: number, put: PutRequest): number {
  at = writeLatin1Field(out, at, 0x0a, put.key);
  at = writeLatin1Field(out, at, 0x12, put.value);
  at = writeBigIntField(out, at, 0x18, put.lease);
  at = writeBoolField(out, at, 0x20, put.prevKv);
  at = writeBoolField(out, at, 0x28, put.ignoreValue);
  return writeBoolField(out, at, 0x30, put.ignoreLease);
}

/** After the headroom, ready to be framed. */
export function encodePutRequest(put: PutRequest): Buffer {
  const out = allocateFrame(putRequestSize(put));
  writePutRequest(out, frameHeadroomBytes, put);
  return out;
}

export function putResponseSize(header: ResponseHeader, result: PutResult): number {
  return headerFieldSize(header) + keyValueFieldSize(result.prevKv);
}

export function writePutResponse(out: Buffer, at: number, header: ResponseHeader, result: PutResult): number {
  return writeKeyValueField(out, writeHeaderField(out, at, header), 0x12, result.prevKv);
}

/** After the headroom, ready to be framed. */
export function encodePutResponse(header: ResponseHeader, result: PutResult): Buffer {
  const out = allocateFrame(putResponseSize(header, result));
  writePutResponse(out, frameHeadroomBytes, header, result);
  return out;
}

/** The same if it takes at most this many bytes, else its size. */
export function encodePutResponseWithin(header: ResponseHeader, result: PutResult, roomBytes: number): Buffer | number {
  const size = putResponseSize(header, result);
  return size > roomBytes ? size : encodePutResponse(header, result);
}
