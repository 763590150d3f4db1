import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { keyValueFieldSize, writeKeyValueField } from './key-value.ts';
import { type ResponseHeader, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { KeyValue, RangeRequest, RangeResult } from '@tenure/core';
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

const requestFields = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];

export function emptyRangeRequest(): Mutable<RangeRequest> {
  return {
    key: '',
    rangeEnd: '',
    limit: 0,
    revision: 0,
    sortOrder: 0,
    sortTarget: 0,
    serializable: false,
    keysOnly: false,
    countOnly: false,
    minModRevision: 0,
    maxModRevision: 0,
    minCreateRevision: 0,
    maxCreateRevision: 0,
  };
}

/** Reads to the reader's end into `range`: absent fields keep their values, as in a merge of two messages. */
export function readRangeRequest(reader: WireReader, range: Mutable<RangeRequest>): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        range.key = reader.latin1();
        break;
      case 0x12:
        range.rangeEnd = reader.latin1();
        break;
      case 0x18:
        range.limit = reader.int64();
        break;
      case 0x20:
        range.revision = reader.int64();
        break;
      case 0x28:
        range.sortOrder = reader.enumNumber();
        break;
      case 0x30:
        range.sortTarget = reader.enumNumber();
        break;
      case 0x38:
        range.serializable = reader.bool();
        break;
      case 0x40:
        range.keysOnly = reader.bool();
        break;
      case 0x48:
        range.countOnly = reader.bool();
        break;
      case 0x50:
        range.minModRevision = reader.int64();
        break;
      case 0x58:
        range.maxModRevision = reader.int64();
        break;
      case 0x60:
        range.minCreateRevision = reader.int64();
        break;
      case 0x68:
        range.maxCreateRevision = reader.int64();
        break;
      default:
        reader.skipUnknown(tag, requestFields);
    }
  }
}

/** Reads the message in [start, end). Throws DecodeError. */
export function decodeRangeRequest(bytes: Buffer, start = 0, end = bytes.length): RangeRequest {
  const range = emptyRangeRequest();
  readRangeRequest(new WireReader(bytes, start, end), range);
  return range;
}

/** In bytes, without headroom. */
export function rangeRequestSize(range: RangeRequest): number {
  return (
    latin1FieldSize(1, range.key) +
    latin1FieldSize(1, range.rangeEnd) +
    numberFieldSize(1, range.limit) +
    numberFieldSize(1, range.revision) +
    numberFieldSize(1, range.sortOrder) +
    numberFieldSize(1, range.sortTarget) +
    boolFieldSize(1, range.serializable) +
    boolFieldSize(1, range.keysOnly) +
    boolFieldSize(1, range.countOnly) +
    numberFieldSize(1, range.minModRevision) +
    numberFieldSize(1, range.maxModRevision) +
    numberFieldSize(1, range.minCreateRevision) +
    numberFieldSize(1, range.maxCreateRevision)
  );
}

/** Writes `rangeRequestSize(range)` bytes at `at` and returns the position after them. */
export function writeRangeRequest(out: Buffer, at: number, range: RangeRequest): number {
  at = writeLatin1Field(out, at, 0x0a, range.key);
  at = writeLatin1Field(out, at, 0x12, range.rangeEnd);
  at = writeNumberField(out, at, 0x18, range.limit);
  at = writeNumberField(out, at, 0x20, range.revision);
  at = writeNumberField(out, at, 0x28, range.sortOrder);
  at = writeNumberField(out, at, 0x30, range.sortTarget);
  at = writeBoolField(out, at, 0x38, range.serializable);
  at = writeBoolField(out, at, 0x40, range.keysOnly);
  at = writeBoolField(out, at, 0x48, range.countOnly);
  at = writeNumberField(out, at, 0x50, range.minModRevision);
  at = writeNumberField(out, at, 0x58, range.maxModRevision);
  at = writeNumberField(out, at, 0x60, range.minCreateRevision);
  return writeNumberField(out, at, 0x68, range.maxCreateRevision);
}

/** After the headroom, ready to be framed. */
export function encodeRangeRequest(range: RangeRequest): Buffer {
  const out = allocateFrame(rangeRequestSize(range));
  writeRangeRequest(out, frameHeadroomBytes, range);
  return out;
}

export function rangeResponseSize(header: ResponseHeader, result: RangeResult): number {
  let size = headerFieldSize(header) + boolFieldSize(1, result.more) + numberFieldSize(1, result.count);
  for (const kv of result.kvs) size += keyValueFieldSize(kv);
  return size;
}

export function writeRangeResponse(out: Buffer, at: number, header: ResponseHeader, result: RangeResult): number {
  at = writeHeaderField(out, at, header);
  for (const kv of result.kvs) at = writeKeyValueField(out, at, 0x12, kv);
  at = writeBoolField(out, at, 0x18, result.more);
  return writeNumberField(out, at, 0x20, result.count);
}

/** The same for a reply that is written in slices. */
export function rangeReplyList(header: ResponseHeader, { kvs, more, count }: RangeResult): ListMessage<KeyValue> {
  return {
    items: kvs,
    itemSize: keyValueFieldSize,
    writeItem: (out, at, kv) => writeKeyValueField(out, at, 0x12, kv),
    headSize: headerFieldSize(header),
    tailSize: boolFieldSize(1, more) + numberFieldSize(1, count),
    writeHead: (out, at) => writeHeaderField(out, at, header),
    writeTail: (out, at) => writeNumberField(out, writeBoolField(out, at, 0x18, more), 0x20, count),
  };
}

/** After the headroom, ready to be framed. */
export function encodeRangeResponse(header: ResponseHeader, result: RangeResult): Buffer {
  const out = allocateFrame(rangeResponseSize(header, result));
  writeRangeResponse(out, frameHeadroomBytes, header, result);
  return out;
}
