import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { keyValueFieldSize, writeKeyValueField } from './key-value.ts';
import { type ResponseHeader, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { KvEvent } from '@tenure/core';
import {
  bigIntFieldSize,
  boolFieldSize,
  delimitedSize,
  numberFieldSize,
  utf8FieldSize,
  writeBigIntField,
  writeBoolField,
  writeDelimiter,
  writeNumberField,
  writeUtf8Field,
} from './wire-write.ts';

const eventsTag = 0x5a;
const eventTypeDelete = 1;

/** What a response has besides its header and the id of the watch. */
export interface WatchResponseFields {
  readonly created: boolean;
  readonly canceled: boolean;
  /** 0 unless the watch ended because its revision is compacted. */
  readonly compactRevision: number;
  readonly cancelReason: string;
  /** More of the same revision follows. */
  readonly fragment: boolean;
  readonly events: readonly KvEvent[];
  /** The watcher requested the previous values; otherwise they are left out, even if the events have them. */
  readonly withPrevKv: boolean;
}

function eventSize(event: KvEvent, withPrevKv: boolean): number {
  return (
    (event.type === 'delete' ? 2 : 0) + keyValueFieldSize(event.kv) + (withPrevKv ? keyValueFieldSize(event.prevKv) : 0)
  );
}

/** The bytes that an event adds to a response: used to split long responses. */
export function watchEventSize(event: KvEvent, withPrevKv: boolean): number {
  return delimitedSize(1, eventSize(event, withPrevKv));
}

function writeEvent(out: Buffer, at: number, event: KvEvent, withPrevKv: boolean): number {
  at = writeDelimiter(out, at, eventsTag, eventSize(event, withPrevKv));
  if (event.type === 'delete') at = writeNumberField(out, at, 0x08, eventTypeDelete);
  at = writeKeyValueField(out, at, 0x12, event.kv);
  return withPrevKv ? writeKeyValueField(out, at, 0x1a, event.prevKv) : at;
}

/** After the headroom, ready to be framed. */
export function encodeWatchResponse(header: ResponseHeader, watchId: bigint, fields: WatchResponseFields): Buffer {
  const { events, withPrevKv } = fields;
  let size =
    headerFieldSize(header) +
    bigIntFieldSize(1, watchId) +
    boolFieldSize(1, fields.created) +
    boolFieldSize(1, fields.canceled) +
    numberFieldSize(1, fields.compactRevision) +
    utf8FieldSize(1, fields.cancelReason) +
    boolFieldSize(1, fields.fragment);
  for (const event of events) size += watchEventSize(event, withPrevKv);

  const out = allocateFrame(size);
  let at = writeHeaderField(out, frameHeadroomBytes, header);
  at = writeBigIntField(out, at, 0x10, watchId);
  at = writeBoolField(out, at, 0x18, fields.created);
  at = writeBoolField(out, at, 0x20, fields.canceled);
  at = writeNumberField(out, at, 0x28, fields.compactRevision);
  at = writeUtf8Field(out, at, 0x32, fields.cancelReason);
  at = writeBoolField(out, at, 0x38, fields.fragment);
  for (const event of events) at = writeEvent(out, at, event, withPrevKv);
  return out;
}
