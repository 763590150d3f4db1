import { compareFieldSize, readCompare, writeCompareField } from './compare.ts';
import { DecodeError } from './decode-error.ts';
import {
  deleteRangeRequestSize,
  emptyDeleteRangeRequest,
  readDeleteRangeRequest,
  writeDeleteRangeRequest,
} from './delete-range.ts';
import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { MeasuredSizes } from './measured-sizes.ts';
import { emptyPutRequest, putRequestSize, readPutRequest, writePutRequest } from './put.ts';
import { emptyRangeRequest, rangeRequestSize, readRangeRequest, writeRangeRequest } from './range.ts';
import type { Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from '@tenure/core';
import type { Mutable } from './mutable.ts';
import { maxTxnDepth } from './txn-depth.ts';
import { WireReader } from './wire-reader.ts';
import { delimitedSize, writeDelimiter } from './wire-write.ts';

const txnFields = [1, 2, 3];
const opFields = [1, 2, 3, 4];

const rangeTag = 0x0a;
const putTag = 0x12;
const deleteRangeTag = 0x1a;
const txnTag = 0x22;

interface OpenTxn {
  readonly compare: Compare[];
  readonly success: RequestOp[];
  readonly failure: RequestOp[];
}

/** An op while it is being read, and may still be merged into. */
type OpenOp =
  | { readonly kind: 'range'; readonly range: Mutable<RangeRequest> }
  | { readonly kind: 'put'; readonly put: Mutable<PutRequest> }
  | { readonly kind: 'deleteRange'; readonly deleteRange: Mutable<DeleteRangeRequest> }
  | { readonly kind: 'txn'; readonly txn: OpenTxn }
  | { readonly kind: 'empty' };

const emptyOp: OpenOp = { kind: 'empty' };

function emptyTxn(): OpenTxn {
  return { compare: [], success: [], failure: [] };
}

/**
 * Reads one field of an op: as protobuf has it, a second message of the same kind is merged into the first, one of
 * another kind replaces it. (etcd up to 3.6 replaces in both cases; no encoder makes either.)
 */
function readOpField(reader: WireReader, op: OpenOp, tag: number, depth: number, room: Room): OpenOp {
  switch (tag) {
    case rangeTag: {
      const open = op.kind === 'range' ? op : ({ kind: 'range', range: emptyRangeRequest() } as const);
      readRangeRequest(reader, open.range);
      return open;
    }
    case putTag: {
      const open = op.kind === 'put' ? op : ({ kind: 'put', put: emptyPutRequest() } as const);
      readPutRequest(reader, open.put);
      return open;
    }
    case deleteRangeTag: {
      const open =
        op.kind === 'deleteRange' ? op : ({ kind: 'deleteRange', deleteRange: emptyDeleteRangeRequest() } as const);
      readDeleteRangeRequest(reader, open.deleteRange);
      return open;
    }
    default: {
      const open = op.kind === 'txn' ? op : ({ kind: 'txn', txn: emptyTxn() } as const);
      readTxn(reader, open.txn, depth + 1, room);
      return open;
    }
  }
}

function readOp(reader: WireReader, depth: number, room: Room): RequestOp {
  let op = emptyOp;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === rangeTag || tag === putTag || tag === deleteRangeTag || tag === txnTag) {
      const outer = reader.enter();
      op = readOpField(reader, op, tag, depth, room);
      reader.leave(outer);
    } else {
      reader.skipUnknown(tag, opFields);
    }
  }
  return op;
}

/** The number of comparisons and ops to decode; further ones are skipped. */
interface Room {
  left: number;
}

function readTxn(reader: WireReader, txn: OpenTxn, depth: number, room: Room): void {
  if (depth > maxTxnDepth) throw new DecodeError('TooDeep');
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== 0x0a && tag !== 0x12 && tag !== 0x1a) {
      reader.skipUnknown(tag, txnFields);
      continue;
    }
    if (room.left === 0) {
      reader.skip(tag);
      continue;
    }
    room.left -= 1;
    const outer = reader.enter();
    if (tag === 0x0a) txn.compare.push(readCompare(reader));
    else (tag === 0x12 ? txn.success : txn.failure).push(readOp(reader, depth, room));
    reader.leave(outer);
  }
}

/** Reads the message in [start, end). Throws DecodeError, also when transactions nest deeper than `maxTxnDepth`. */
export function decodeTxnRequest(bytes: Buffer, start = 0, end = bytes.length): TxnRequest {
  return readTxnOf(new WireReader(bytes, start, end), Infinity);
}

/**
 * The same, with at most `maxOps` comparisons and ops in all nested transactions together: the rest is skipped, for a
 * caller that refuses that many. Otherwise a request with very many tiny ops would take long to read.
 */
export function decodeBoundedTxnRequest(bytes: Buffer, maxOps: number): TxnRequest {
  return readTxnOf(new WireReader(bytes), maxOps);
}

function readTxnOf(reader: WireReader, maxOps: number): TxnRequest {
  const txn = emptyTxn();
  readTxn(reader, txn, 1, { left: maxOps });
  return txn;
}

/** The size of the contents of an op, as a field. */
function requestFieldSize(op: RequestOp, sizes: MeasuredSizes): number {
  if (op.kind === 'empty') return 0;
  const place = sizes.reserve();
  switch (op.kind) {
    case 'range':
      return delimitedSize(1, sizes.fill(place, rangeRequestSize(op.range)));
    case 'put':
      return delimitedSize(1, sizes.fill(place, putRequestSize(op.put)));
    case 'deleteRange':
      return delimitedSize(1, sizes.fill(place, deleteRangeRequestSize(op.deleteRange)));
    case 'txn':
      return delimitedSize(1, sizes.fill(place, txnSize(op.txn, sizes)));
  }
}

function opFieldSize(op: RequestOp, sizes: MeasuredSizes): number {
  const place = sizes.reserve();
  return delimitedSize(1, sizes.fill(place, requestFieldSize(op, sizes)));
}

function txnSize(txn: TxnRequest, sizes: MeasuredSizes): number {
  let size = 0;
  for (const compare of txn.compare) size += compareFieldSize(compare);
  for (const op of txn.success) size += opFieldSize(op, sizes);
  for (const op of txn.failure) size += opFieldSize(op, sizes);
  return size;
}

function writeOpField(out: Buffer, at: number, tag: number, op: RequestOp, sizes: MeasuredSizes): number {
  at = writeDelimiter(out, at, tag, sizes.take());
  switch (op.kind) {
    case 'empty':
      return at;
    case 'range':
      return writeRangeRequest(out, writeDelimiter(out, at, rangeTag, sizes.take()), op.range);
    case 'put':
      return writePutRequest(out, writeDelimiter(out, at, putTag, sizes.take()), op.put);
    case 'deleteRange':
      return writeDeleteRangeRequest(out, writeDelimiter(out, at, deleteRangeTag, sizes.take()), op.deleteRange);
    case 'txn':
      return writeTxn(out, writeDelimiter(out, at, txnTag, sizes.take()), op.txn, sizes);
  }
}

function writeTxn(out: Buffer, at: number, txn: TxnRequest, sizes: MeasuredSizes): number {
  for (const compare of txn.compare) at = writeCompareField(out, at, 0x0a, compare);
  for (const op of txn.success) at = writeOpField(out, at, 0x12, op, sizes);
  for (const op of txn.failure) at = writeOpField(out, at, 0x1a, op, sizes);
  return at;
}

/** Behind headroom, ready to be framed. */
export function encodeTxnRequest(txn: TxnRequest): Buffer {
  const sizes = new MeasuredSizes();
  const out = allocateFrame(txnSize(txn, sizes));
  writeTxn(out, frameHeadroomBytes, txn, sizes);
  return out;
}
