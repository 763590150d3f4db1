import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import type { EtcdConnection, EtcdStream } from '../connection/etcd-connection.ts';
import { etcdErrorOf } from '../connection/etcd-error-of.ts';
import { EtcdError } from '../connection/etcd-error.ts';
import { rangeOf } from './key-range.ts';
import type { KeyRange } from './key-range.ts';
import { KeyValue } from './key-value.ts';
import { onAbort } from '../../time/on-abort.ts';
import type { Signal } from '../../time/signal.ts';

export interface WatchOptions {
  /** From this revision on; from now on if it is not given. */
  readonly fromRevision?: bigint;
  readonly prevKv?: boolean;
  /** Omits one kind of events. */
  readonly only?: 'puts' | 'deletes';
  /** Ends the watch without an error. */
  readonly signal?: Signal;
  /** By default a watch that is being read keeps the process alive. */
  readonly unref?: boolean;
}

export interface WatchEvent {
  readonly kind: 'put' | 'delete';
  /** For a delete it has the key and, as modRevision, the revision of the delete. */
  readonly kv: KeyValue;
  readonly prevKv: KeyValue | undefined;
}

/** Events of whole revisions, in order: a revision is never split. */
export interface WatchBatch {
  /** All changes up to this revision have been reported. */
  readonly revision: bigint;
  /** Empty in the first batch, and when a broken watch has been re-established. */
  readonly events: readonly WatchEvent[];
}

const { WatchRequestSchema, WatchResponseSchema, WatchCreateRequest_FilterType: FilterType } = etcdserverpb;
const path = '/etcdserverpb.Watch/Watch';
/** What a server says about a token that has ended; etcd 3.4 says the first of these. A retry has a new token. */
const deniedTexts =
  /^etcdserver: (?:permission denied|invalid auth token|revision of auth store is old|user name is empty)$/;
/** What a server says about the request itself, whichever server it is. */
const emptyRangeText = 'mvcc: watcher range is empty';
/** In a row, each with a new token: then it is not the token. */
const maxDenials = 3;
const shortestPauseMs = 50;
const longestPauseMs = 2000;

/**
 * The changes of a range, each once and in order. A broken watch is re-established on another server, from the revision
 * after the last one reported, with retries until it succeeds. The first batch is empty and arrives when the watch is
 * established: a read after that can't miss a change.
 *
 * Throws EtcdError: `compacted` when the required history is gone, with the oldest remaining revision; `denied` or
 * `invalid` when the server refuses the watch.
 */
export async function* watchRange(
  connection: EtcdConnection,
  range: KeyRange,
  options: WatchOptions,
): AsyncGenerator<WatchBatch, void, undefined> {
  const { unref = false } = options;
  // Also between two streams.
  const release = unref ? undefined : connection.processRef.take();
  try {
    yield* watchUntilAborted(connection, range, { ...options, unref });
  } finally {
    release?.();
  }
}

async function* watchUntilAborted(
  connection: EtcdConnection,
  range: KeyRange,
  options: WatchOptions & { readonly unref: boolean },
): AsyncGenerator<WatchBatch, void, undefined> {
  const { signal, unref } = options;
  let nextRevision = options.fromRevision ?? 0n;
  let denials = 0;
  for (let failures = 0; !connection.isClosed && !isAborted(signal);) {
    try {
      const stream = await connection.stream(path, { headers: { hasleader: 'true' }, unref });
      for await (const batch of oneStream(stream, range, { ...options, fromRevision: nextRevision })) {
        failures = denials = 0;
        if (batch.revision >= nextRevision) nextRevision = batch.revision + 1n;
        yield batch;
      }
    } catch (error) {
      if (isAborted(signal)) return;
      if (!(error instanceof EtcdError) || ['compacted', 'invalid', 'closed'].includes(error.etcdCode)) throw error;
      denials = error.etcdCode === 'denied' ? denials + 1 : 0;
      if (denials === maxDenials || (denials > 0 && !deniedTexts.test(error.details))) throw error;
    }
    failures++;
    await connection.pause(Math.min(longestPauseMs, shortestPauseMs * 2 ** Math.min(failures, 10)), signal);
  }
}

/** Runs one stream until it ends. It ends with an EtcdError unless the client ended it. */
async function* oneStream(
  { call, endpoint, abandon }: EtcdStream,
  range: KeyRange,
  options: WatchOptions & { readonly fromRevision: bigint },
): AsyncGenerator<WatchBatch, void, undefined> {
  const { fromRevision, signal } = options;
  const stopWaiting = signal === undefined ? undefined : onAbort(signal, () => call.cancel());
  let events: WatchEvent[] = [];
  try {
    call.write(createRequest(range, options));
    for await (const bytes of call as AsyncIterable<Buffer>) {
      const answer = fromBinary(WatchResponseSchema, bytes, { readUnknownFields: false });
      if (answer.canceled) throw cancelled(endpoint, answer);
      events.push(...answer.events.map(eventOf));
      if (answer.fragment) continue;
      if (answer.created) yield { revision: revisionBefore(fromRevision, answer), events };
      else if (events.length > 0) yield { revision: events.at(-1)!.kv.modRevision, events };
      events = [];
    }
    throw new EtcdError('unreachable', endpoint, 'the server ended the watch');
  } catch (error) {
    // A stream that the client ended says nothing about the server or the token.
    if (!isAborted(signal)) abandon();
    throw etcdErrorOf(endpoint, error);
  } finally {
    stopWaiting?.();
    call.on('error', () => undefined);
    call.cancel();
  }
}

function createRequest(range: KeyRange, options: WatchOptions): Buffer {
  const filters = options.only === undefined ? [] : [options.only === 'puts' ? FilterType.NODELETE : FilterType.NOPUT];
  const startRevision = options.fromRevision ?? 0n;
  const value = { ...rangeOf(range), startRevision, prevKv: options.prevKv === true, filters, fragment: true };
  const request = create(WatchRequestSchema, { requestUnion: { case: 'createRequest', value } });
  return Buffer.from(toBinary(WatchRequestSchema, request));
}

/**
 * A watch without a start revision begins after the revision at its creation, also when it breaks before its first
 * event.
 */
function revisionBefore(fromRevision: bigint, created: etcdserverpb.WatchResponse): bigint {
  return fromRevision === 0n ? (created.header?.revision ?? 0n) : fromRevision - 1n;
}

function cancelled(endpoint: string, answer: etcdserverpb.WatchResponse): EtcdError {
  const { compactRevision, cancelReason } = answer;
  if (compactRevision > 0n) {
    const words = `the history before revision ${compactRevision} is gone`;
    return new EtcdError('compacted', endpoint, words, { compactRevision });
  }
  const details = cancelReason.replace(/^rpc error: code = \w+ desc = /, '');
  const code = details === emptyRangeText ? 'invalid' : deniedTexts.test(details) ? 'denied' : 'unreachable';
  return new EtcdError(code, endpoint, details === '' ? 'the server ended the watch' : details);
}

function eventOf({ type, kv, prevKv }: mvccpb.Event): WatchEvent {
  if (kv === undefined) throw new Error('an event came without its key');
  const kind = type === mvccpb.Event_EventType.PUT ? 'put' : 'delete';
  return { kind, kv: new KeyValue(kv), prevKv: prevKv && new KeyValue(prevKv) };
}

function isAborted(signal: Signal | undefined): boolean {
  return signal?.aborted === true;
}
