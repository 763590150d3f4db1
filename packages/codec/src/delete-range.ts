import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { keyValueFieldSize, writeKeyValueField } from './key-value.ts';
import { type ResponseHeader, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { DeleteRangeRequest, DeleteRangeResult, KeyValue } from '@tenure/core';
import type { Mutable } from './mutable.ts';
import type { ListMessage } from './sliced-reply.ts';
import { WireReader } from './wire-reader.ts';
import {
  boolFieldSize,
  latin1FieldSize,
  numberFieldSize,
  writeBoolField,
  writeLatin1Field,
  writeNumberField,
} from './wire-write.ts';

const requestFields = [1, 2, 3];

export function emptyDeleteRangeRequest(): Mutable<DeleteRangeRequest> {
  return { key: '', rangeEnd: '', prevKv: false };
}

/** Reads to the reader's end into `request`: absent fields keep their values, as in a merge of two messages. */
export function readDeleteRangeRequest(reader: WireReader, request: Mutable<DeleteRangeRequest>): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        request.key = reader.latin1();
        break;
      case 0x12:
        request.rangeEnd = reader.latin1();
        break;
      case 0x18:
        request.prevKv = reader.bool();
        break;
      default:
        reader.skipUnknown(tag, requestFields);
    }
  }
}

/** Reads the message in [start, end). Throws DecodeError. */
export function decodeDeleteRangeRequest(bytes: Buffer, start = 0, end = bytes.length): DeleteRangeRequest {
  const request = emptyDeleteRangeRequest();
  readDeleteRangeRequest(new WireReader(bytes, start, end), request);
  return request;
}

/** In bytes, without headroom. */
export function deleteRangeRequestSize(request: DeleteRangeRequest): number {
  return latin1FieldSize(1, request.key) + latin1FieldSize(1, request.rangeEnd) + boolFieldSize(1, request.prevKv);
}

/** Writes `deleteRangeRequestSize(request)` bytes at `at` and returns the position after them. */
export function writeDeleteRangeRequest(out: Buffer, at: number, request: DeleteRangeRequest): number {
  at = writeLatin1Field(out, at, 0x0a, request.key);
  at = writeLatin1Field(out, at, 0x12, request.rangeEnd);
  return writeBoolField(out, at, 0x18, request.prevKv);
}

/** After the headroom, ready to be framed. */
export function encodeDeleteRangeRequest(request: DeleteRangeRequest): Buffer {
  const out = allocateFrame(deleteRangeRequestSize(request));
  writeDeleteRangeRequest(out, frameHeadroomBytes, request);
  return out;
}

export function deleteRangeResponseSize(header: ResponseHeader, result: DeleteRangeResult): number {
  let size = headerFieldSize(header) + numberFieldSize(1, result.deleted);
  for (const kv of result.prevKvs) size += keyValueFieldSize(kv);
  return size;
}

export function writeDeleteRangeResponse(
  out: Buffer,
  at: number,
  header: ResponseHeader,
  result: DeleteRangeResult,
): number {
  at = writeHeaderField(out, at, header);
  at = writeNumberField(out, at, 0x10, result.deleted);
  for (const kv of result.prevKvs) at = writeKeyValueField(out, at, 0x1a, kv);
  return at;
}

/** The same for a reply that is written in slices. */
export function deleteRangeReplyList(header: ResponseHeader, result: DeleteRangeResult): ListMessage<KeyValue> {
  return {
    items: result.prevKvs,
    itemSize: keyValueFieldSize,
    writeItem: (out, at, kv) => writeKeyValueField(out, at, 0x1a, kv),
    headSize: headerFieldSize(header) + numberFieldSize(1, result.deleted),
    tailSize: 0,
    writeHead: (out, at) => writeNumberField(out, writeHeaderField(out, at, header), 0x10, result.deleted),
    writeTail: (_out, at) => at,
  };
}
