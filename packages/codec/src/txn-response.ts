import { deleteRangeResponseSize, writeDeleteRangeResponse } from './delete-range.ts';
import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { MeasuredSizes } from './measured-sizes.ts';
import { putResponseSize, writePutResponse } from './put.ts';
import { rangeResponseSize, writeRangeResponse } from './range.ts';
import { type ResponseHeader, emptyHeaderPrefix, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { ResponseOp, TxnResult } from '@tenure/core';
import { boolFieldSize, delimitedSize, writeBoolField, writeDelimiter } from './wire-write.ts';

const responseTag = 0x1a;
const rangeTag = 0x0a;
const putTag = 0x12;
const deleteRangeTag = 0x1a;
const txnTag = 0x22;

/**
 * As in etcd, responses inside a response have no server and no term, and those of an inner transaction no revision
 * either.
 */
function innerHeader(op: ResponseOp): ResponseHeader {
  return { prefix: emptyHeaderPrefix, revision: op.revision, raftTerm: 0 };
}

function responseFieldSize(op: ResponseOp, sizes: MeasuredSizes): number {
  const place = sizes.reserve();
  const header = innerHeader(op);
  switch (op.kind) {
    case 'range':
      return delimitedSize(1, sizes.fill(place, rangeResponseSize(header, op.range)));
    case 'put':
      return delimitedSize(1, sizes.fill(place, putResponseSize(header, op.put)));
    case 'deleteRange':
      return delimitedSize(1, sizes.fill(place, deleteRangeResponseSize(header, op.deleteRange)));
    case 'txn':
      return delimitedSize(1, sizes.fill(place, txnResponseSize(header, op.txn, sizes)));
  }
}

function txnResponseSize(header: ResponseHeader, result: TxnResult, sizes: MeasuredSizes): number {
  let size = headerFieldSize(header) + boolFieldSize(1, result.succeeded);
  for (const op of result.responses) {
    const place = sizes.reserve();
    size += delimitedSize(1, sizes.fill(place, responseFieldSize(op, sizes)));
  }
  return size;
}

function writeResponseOp(out: Buffer, at: number, op: ResponseOp, sizes: MeasuredSizes): number {
  at = writeDelimiter(out, at, responseTag, sizes.take());
  const header = innerHeader(op);
  const size = sizes.take();
  switch (op.kind) {
    case 'range':
      return writeRangeResponse(out, writeDelimiter(out, at, rangeTag, size), header, op.range);
    case 'put':
      return writePutResponse(out, writeDelimiter(out, at, putTag, size), header, op.put);
    case 'deleteRange':
      return writeDeleteRangeResponse(out, writeDelimiter(out, at, deleteRangeTag, size), header, op.deleteRange);
    case 'txn':
      return writeTxnResponse(out, writeDelimiter(out, at, txnTag, size), header, op.txn, sizes);
  }
}

function writeTxnResponse(
  out: Buffer,
  at: number,
  header: ResponseHeader,
  result: TxnResult,
  sizes: MeasuredSizes,
): number {
  at = writeHeaderField(out, at, header);
  at = writeBoolField(out, at, 0x10, result.succeeded);
  for (const op of result.responses) at = writeResponseOp(out, at, op, sizes);
  return at;
}

/** After the headroom, ready to be framed, if it takes at most this many bytes; else its size. */
export function encodeTxnResponseWithin(header: ResponseHeader, result: TxnResult, roomBytes: number): Buffer | number {
  const sizes = new MeasuredSizes();
  const size = txnResponseSize(header, result, sizes);
  if (size > roomBytes) return size;
  const out = allocateFrame(size);
  writeTxnResponse(out, frameHeadroomBytes, header, result, sizes);
  return out;
}
