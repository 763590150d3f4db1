import {
  bigIntFieldSize,
  delimitedSize,
  numberFieldSize,
  writeBigIntField,
  writeDelimiter,
  writeNumberField,
} from './wire-write.ts';

const clusterIdTag = 0x08;
const memberIdTag = 0x10;
const revisionTag = 0x18;
const raftTermTag = 0x20;

/** The tag of the header in every reply. */
const headerTag = 0x0a;

/** The part of every reply's header that does not change while a server runs, encoded once. */
export interface ResponseHeaderPrefix {
  readonly bytes: Buffer;
}

/** A header without ids, for the responses inside a transaction's response. */
export const emptyHeaderPrefix: ResponseHeaderPrefix = { bytes: Buffer.alloc(0) };

export function responseHeaderPrefix(clusterId: bigint, memberId: bigint): ResponseHeaderPrefix {
  const bytes = Buffer.alloc(bigIntFieldSize(1, clusterId) + bigIntFieldSize(1, memberId));
  writeBigIntField(bytes, writeBigIntField(bytes, 0, clusterIdTag, clusterId), memberIdTag, memberId);
  return { bytes };
}

/** The server and the state of a reply. */
export interface ResponseHeader {
  readonly prefix: ResponseHeaderPrefix;
  readonly revision: number;
  readonly raftTerm: number;
}

function headerBodySize(header: ResponseHeader): number {
  return header.prefix.bytes.length + numberFieldSize(1, header.revision) + numberFieldSize(1, header.raftTerm);
}

/** The size of the header as a field of a reply. It is written even when it is empty. */
export function headerFieldSize(header: ResponseHeader): number {
  return delimitedSize(1, headerBodySize(header));
}

export function writeHeaderField(out: Buffer, at: number, header: ResponseHeader): number {
  at = writeDelimiter(out, at, headerTag, headerBodySize(header));
  const ids = header.prefix.bytes;
  for (let i = 0; i < ids.length; i++) out[at + i] = ids[i]!;
  at = writeNumberField(out, at + ids.length, revisionTag, header.revision);
  return writeNumberField(out, at, raftTermTag, header.raftTerm);
}
