import type { WireReader } from './wire-reader.ts';
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
const knownFields = [1, 2, 3, 4];

/** The tag of the header in every reply. */
const headerTag = 0x0a;

/** The part of every reply's header that does not change while a server runs, encoded once. */
export interface ResponseHeaderPrefix {
  readonly bytes: Buffer;
}

/** No ids at all: what the replies inside a transaction's reply carry. */
export const emptyHeaderPrefix: ResponseHeaderPrefix = { bytes: Buffer.alloc(0) };

export function responseHeaderPrefix(clusterId: bigint, memberId: bigint): ResponseHeaderPrefix {
  const bytes = Buffer.alloc(bigIntFieldSize(1, clusterId) + bigIntFieldSize(1, memberId));
  writeBigIntField(bytes, writeBigIntField(bytes, 0, clusterIdTag, clusterId), memberIdTag, memberId);
  return { bytes };
}

/** What a reply says about the server and the state that made it. */
export interface ResponseHeader {
  readonly prefix: ResponseHeaderPrefix;
  readonly revision: number;
  readonly raftTerm: number;
}

function headerBodySize(header: ResponseHeader): number {
  return header.prefix.bytes.length + numberFieldSize(1, header.revision) + numberFieldSize(1, header.raftTerm);
}

/** The size of the header as a field of a reply. It is there even when it is empty. */
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

/** Reads the header that the reader has entered, and returns its revision; `before` when it names none. */
export function readHeaderRevision(reader: WireReader, before: number): number {
  let revision = before;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === revisionTag) revision = reader.int64();
    else if (tag === clusterIdTag || tag === memberIdTag || tag === raftTermTag) reader.bool();
    else reader.skipUnknown(tag, knownFields);
  }
  return revision;
}
