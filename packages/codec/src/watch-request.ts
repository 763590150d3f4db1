import type { Mutable } from './mutable.ts';
import { WireReader } from './wire-reader.ts';

const createTag = 0x0a;
const cancelTag = 0x12;
const progressTag = 0x1a;

const requestFields = [1, 2, 3];
const createFields = [1, 2, 3, 4, 5, 6, 7, 8];
const cancelFields = [1];
const progressFields: readonly number[] = [];

const noPutFilter = 0;
const noDeleteFilter = 1;

/** A watch that a client wants. */
export interface WatchCreateRequest {
  /** One char per byte, as `rangeEnd`. */
  readonly key: string;
  readonly rangeEnd: string;
  readonly startRevision: number;
  readonly progressNotify: boolean;
  /** The filters by name: one that is unknown filters nothing, as in etcd. */
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  /** 0n: the server chooses. */
  readonly watchId: bigint;
  readonly fragment: boolean;
}

export type WatchRequest =
  | { readonly kind: 'create'; readonly create: WatchCreateRequest }
  | { readonly kind: 'cancel'; readonly watchId: bigint }
  | { readonly kind: 'progress' }
  /** From a later version, or without a content. */
  | { readonly kind: 'empty' };

/** A request while it is being read, and may still be merged into. */
type OpenRequest =
  | { readonly kind: 'create'; readonly create: Mutable<WatchCreateRequest> }
  | { readonly kind: 'cancel'; watchId: bigint }
  | { readonly kind: 'progress' }
  | { readonly kind: 'empty' };

const emptyRequest: OpenRequest = { kind: 'empty' };
const progressRequest: OpenRequest = { kind: 'progress' };

function emptyCreate(): Mutable<WatchCreateRequest> {
  return {
    key: '',
    rangeEnd: '',
    startRevision: 0,
    progressNotify: false,
    noPut: false,
    noDelete: false,
    prevKv: false,
    watchId: 0n,
    fragment: false,
  };
}

/** Reads one filter of a list that may have any number: only which ones occur is kept. */
function readFilter(reader: WireReader, create: Mutable<WatchCreateRequest>): void {
  const filter = reader.enumNumber();
  if (filter === noPutFilter) create.noPut = true;
  else if (filter === noDeleteFilter) create.noDelete = true;
}

/** Reads to the reader's end into `create`: absent fields keep their values, as in a merge of two messages. */
function readCreate(reader: WireReader, create: Mutable<WatchCreateRequest>): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        create.key = reader.latin1();
        break;
      case 0x12:
        create.rangeEnd = reader.latin1();
        break;
      case 0x18:
        create.startRevision = reader.int64();
        break;
      case 0x20:
        create.progressNotify = reader.bool();
        break;
      case 0x28:
        readFilter(reader, create);
        break;
      case 0x2a: {
        const outer = reader.enter();
        while (reader.at < reader.end) readFilter(reader, create);
        reader.leave(outer);
        break;
      }
      case 0x30:
        create.prevKv = reader.bool();
        break;
      case 0x38:
        create.watchId = reader.bigInt64();
        break;
      case 0x40:
        create.fragment = reader.bool();
        break;
      default:
        reader.skipUnknown(tag, createFields);
    }
  }
}

function readCancel(reader: WireReader, cancel: { watchId: bigint }): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === 0x08) cancel.watchId = reader.bigInt64();
    else reader.skipUnknown(tag, cancelFields);
  }
}

/**
 * Reads one content: as protobuf has it, a second one of the same kind is merged into the first, one of another kind
 * replaces it.
 */
function readContent(reader: WireReader, request: OpenRequest, tag: number): OpenRequest {
  switch (tag) {
    case createTag: {
      const open = request.kind === 'create' ? request : ({ kind: 'create', create: emptyCreate() } as const);
      readCreate(reader, open.create);
      return open;
    }
    case cancelTag: {
      const open: OpenRequest = request.kind === 'cancel' ? request : { kind: 'cancel', watchId: 0n };
      readCancel(reader, open);
      return open;
    }
    default:
      while (reader.at < reader.end) reader.skipUnknown(reader.tag(), progressFields);
      return progressRequest;
  }
}

/** Throws DecodeError. */
export function decodeWatchRequest(bytes: Buffer): WatchRequest {
  const reader = new WireReader(bytes);
  let request = emptyRequest;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === createTag || tag === cancelTag || tag === progressTag) {
      const outer = reader.enter();
      request = readContent(reader, request, tag);
      reader.leave(outer);
    } else {
      reader.skipUnknown(tag, requestFields);
    }
  }
  return request;
}
