import { errorCatalogue, etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import type { Caller } from '../api/sliced-work.ts';
import { GrpcCode, GrpcStatus, callIsOver } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';

export interface WatchHandler {
  handle(call: DuplexCall): void;
}

export interface WatchedKeys {
  readonly key: Uint8Array<ArrayBuffer>;
  readonly rangeEnd?: Uint8Array<ArrayBuffer>;
  /** 0n for new events only. */
  readonly startRevision: bigint;
}

interface Reader {
  readonly resolve: (response: etcdserverpb.WatchResponse) => void;
  readonly reject: (error: Error) => void;
}

/** As Go prints an error with a code; etcd's own client removes it too. */
const codePrefix = /^rpc error: code = \w+ desc = /;

/**
 * A Watch call that the server makes to itself, with all that a client's has: permissions, limits, compaction and flow
 * control. It ends with the call that it is made for, and when the Watch service ends it.
 */
export class LocalWatch implements DuplexCall {
  readonly path = '/etcdserverpb.Watch/Watch';
  readonly metadata = {};
  readonly deadlineMs = Infinity;
  readonly maxReceiveBytes = Infinity;
  readonly bufferedBytes = 0;
  readonly signal: AbortSignal;
  readonly connection: Caller['connection'];
  readonly requester: Caller['requester'];
  onMessage: (message: Buffer) => void = ignore;
  onHalfClose: () => void = ignore;
  onDrain: () => void = ignore;
  onClose: () => void = ignore;
  readonly #responses: etcdserverpb.WatchResponse[] = [];
  readonly #aborted = (): void => this.end(callIsOver());
  #reader: Reader | undefined;
  #wantsDrain = false;
  #ended: GrpcStatus | undefined;

  constructor(service: WatchHandler, caller: Caller) {
    this.signal = caller.signal;
    this.connection = caller.connection;
    this.requester = caller.requester;
    service.handle(this);
    if (caller.signal.aborted) this.#aborted();
    else caller.signal.addEventListener('abort', this.#aborted, { once: true });
  }

  /** The id of the watch. Rejects with the reason in the words of a Watch reply if it was refused. */
  async create({ key, rangeEnd, startRevision }: WatchedKeys): Promise<bigint> {
    const value = { key, rangeEnd: rangeEnd ?? new Uint8Array(), startRevision };
    this.#request({ case: 'createRequest', value });
    // Events of another watch may have come before.
    const at = this.#responses.findIndex(({ created }) => created);
    const response = at < 0 ? await this.next() : this.#take(at);
    if (response.canceled) throw refusalIn(response);
    return response.watchId;
  }

  /** A watch that this call no longer needs. Its events that have not been read may still come. */
  cancel(watchId: bigint): void {
    this.#request({ case: 'cancelRequest', value: { watchId } });
  }

  /** The next response. One reader at a time. Rejects when the call is over. */
  next(): Promise<etcdserverpb.WatchResponse> {
    if (this.#responses.length > 0) return Promise.resolve(this.#take(0));
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => (this.#reader = { resolve, reject }));
  }

  close(): void {
    this.end(callIsOver());
  }

  /** At most one batch of events is held, until it has been read. */
  send(framed: Buffer): boolean {
    if (this.#ended !== undefined) return true;
    const response = decodeMessage(etcdserverpb.WatchResponseSchema, framed.subarray(frameHeadroomBytes));
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader !== undefined) {
      reader.resolve(response);
      return true;
    }
    this.#responses.push(response);
    this.#wantsDrain ||= response.events.length > 0;
    return !this.#wantsDrain;
  }

  end(status: GrpcStatus): void {
    if (this.#ended !== undefined) return;
    this.#ended = status;
    this.signal.removeEventListener('abort', this.#aborted);
    this.#responses.length = 0;
    this.#reader?.reject(status);
    this.#reader = undefined;
    this.onClose();
  }

  /** Requests are made by the server, one at a time, and each is answered at once. */
  pause(): void {}

  resume(): void {}

  trustPeer(): void {}

  #request(requestUnion: Parameters<typeof requestMessage>[0]): void {
    if (this.#ended === undefined) this.onMessage(requestMessage(requestUnion));
  }

  #take(at: number): etcdserverpb.WatchResponse {
    const [response] = this.#responses.splice(at, 1);
    if (this.#wantsDrain && this.#responses.length === 0) {
      this.#wantsDrain = false;
      this.onDrain();
    }
    return response!;
  }
}

/** Why a watch has ended, or was not created: in its replies etcd's errors have no codes. */
export function refusalIn({ cancelReason }: etcdserverpb.WatchResponse): GrpcStatus {
  const text = cancelReason.replace(codePrefix, '');
  const known = Object.values(errorCatalogue).find((each) => each.text === text);
  return known === undefined ? new GrpcStatus(GrpcCode.unknown, text) : new GrpcStatus(known.code, text);
}

function requestMessage(
  requestUnion:
    | { case: 'createRequest'; value: { key: Uint8Array; rangeEnd: Uint8Array; startRevision: bigint } }
    | { case: 'cancelRequest'; value: { watchId: bigint } },
): Buffer {
  return encodeFramed(etcdserverpb.WatchRequestSchema, { requestUnion }).subarray(frameHeadroomBytes);
}

function ignore(): void {}
