import { fromBinary } from '@bufbuild/protobuf';
import type { KvEvent } from '@tenure/core';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import { keyValueOf } from '../keys/key-reply.ts';

/** What a watch asks for. */
export interface WatchRequest {
  readonly key: string;
  /** As in a range request. */
  readonly rangeEnd: string;
  /** 0: from the next revision on. */
  readonly startRevision: number;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  readonly noPut: boolean;
  readonly noDelete: boolean;
}

/** One response of a watch stream. */
export interface WatchReply {
  /** -1n: it concerns all watches of the stream. */
  readonly watchId: bigint;
  /** From the header. */
  readonly revision: number;
  readonly isCreated: boolean;
  readonly isCanceled: boolean;
  readonly compactRevision: number;
  /** More fragments of the same events follow. */
  readonly isFragment: boolean;
  readonly events: readonly KvEvent[];
}

export function decodeWatchReply(bytes: Uint8Array): WatchReply {
  const reply = fromBinary(etcdserverpb.WatchResponseSchema, bytes);
  return {
    watchId: reply.watchId,
    revision: Number(reply.header?.revision ?? 0n),
    isCreated: reply.created,
    isCanceled: reply.canceled,
    compactRevision: Number(reply.compactRevision),
    isFragment: reply.fragment,
    events: reply.events.map(({ type, kv, prevKv }): KvEvent => {
      if (kv === undefined) throw new Error('an event of a watch has no key');
      return {
        type: type === mvccpb.Event_EventType.PUT ? 'put' : 'delete',
        kv: keyValueOf(kv),
        prevKv: prevKv === undefined ? undefined : keyValueOf(prevKv),
      };
    }),
  };
}

/** Whether the events of a key belong to the watch, and its filters let the event pass. */
export function isWatched({ key, rangeEnd, noPut, noDelete }: WatchRequest, { type, kv }: KvEvent): boolean {
  if (type === 'put' ? noPut : noDelete) return false;
  if (rangeEnd === '') return kv.key === key;
  return kv.key >= key && (rangeEnd === '\0' || kv.key < rangeEnd);
}
