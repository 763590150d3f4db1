import type { IncomingHttpHeaders } from 'node:http';
import type { Requester } from '@tenure/core';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import type { GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../../transport/transport.ts';
import { testConnection } from '@tenure/test-support';

type Encodable = Parameters<typeof encodeFramed<typeof etcdserverpb.WatchRequestSchema>>[1];
type WatchRequest = Encodable['requestUnion'];
type WatchCreate = Extract<WatchRequest, { case: 'createRequest' }>['value'];
type WatchResponse = etcdserverpb.WatchResponse;

/**
 * A Watch call whose client reads when the test says so. It checks the contract of the transport: nothing is sent after
 * the end, and sends against back-pressure are counted.
 */
export class ScriptedCall implements DuplexCall {
  readonly path = '/etcdserverpb.Watch/Watch';
  readonly metadata: IncomingHttpHeaders = {};
  readonly deadlineMs = Number.POSITIVE_INFINITY;
  readonly signal: AbortSignal = new AbortController().signal;
  readonly connection = testConnection();
  readonly maxReceiveBytes = Number.POSITIVE_INFINITY;
  requester: Requester | undefined;
  /** Called when the service sends, before the client reads. */
  onSend: ((response: WatchResponse) => void) | undefined;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  /** The messages that the client has read, in order. */
  readonly received: WatchResponse[] = [];
  status: GrpcStatus | undefined;
  paused = false;
  /** The most bytes that ever waited for the client. */
  highWaterBytes = 0;
  readonly #bufferBytes: number;
  readonly #unread: Buffer[] = [];
  readonly #unsent: Buffer[] = [];
  #bufferedBytes = 0;
  #owesDrain = false;
  #closed = false;

  /** `send` returns false from `bufferBytes` on. */
  constructor(bufferBytes: number) {
    this.#bufferBytes = bufferBytes;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  send(framed: Buffer): boolean {
    if (this.#closed) throw new Error('the service sent something after the call was over');
    this.onSend?.(decodeMessage(etcdserverpb.WatchResponseSchema, framed.subarray(frameHeadroomBytes)));
    this.#unread.push(framed);
    this.#bufferedBytes += framed.length;
    this.highWaterBytes = Math.max(this.highWaterBytes, this.#bufferedBytes);
    if (this.#bufferedBytes < this.#bufferBytes) return true;
    this.#owesDrain = true;
    return false;
  }

  trustPeer(): void {}

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.#deliver();
  }

  end(status: GrpcStatus): void {
    this.status ??= status;
    this.#close();
  }

  /** The client disconnects. */
  disconnect(): void {
    this.#close();
  }

  /** The client requests a watch. */
  create(key: string, more: WatchCreate = {}): void {
    this.request({ case: 'createRequest', value: { ...more, key: Buffer.from(key, 'latin1') } });
  }

  /**
   * Reads everything and describes new responses in short: the watch's id, the revision of the header, and any flags
   * and events.
   */
  brief(): string[] {
    this.read();
    return this.received.splice(0).map(briefly);
  }

  /** The client sends a request; it arrives when the service reads. */
  request(requestUnion: WatchRequest): void {
    const encodable = requestUnion === undefined ? {} : { requestUnion };
    this.requestRaw(encodeFramed(etcdserverpb.WatchRequestSchema, encodable).subarray(frameHeadroomBytes));
  }

  requestRaw(message: Buffer): void {
    this.#unsent.push(message);
    this.#deliver();
  }

  /** The client reads this many messages, all by default. The buffer has drained when the last one is read. */
  read(count = Number.POSITIVE_INFINITY): void {
    for (let n = 0; n < count; n++) {
      const framed = this.#unread.shift();
      if (framed === undefined) return;
      this.#bufferedBytes -= framed.length;
      this.received.push(decodeMessage(etcdserverpb.WatchResponseSchema, framed.subarray(frameHeadroomBytes)));
      if (this.#bufferedBytes === 0 && this.#owesDrain && !this.#closed) {
        this.#owesDrain = false;
        this.onDrain();
      }
    }
  }

  #deliver(): void {
    while (!this.paused && !this.#closed) {
      const message = this.#unsent.shift();
      if (message === undefined) return;
      this.onMessage(message);
      // A handler may not rely on the bytes after it has returned.
      message.fill(0xff);
    }
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onClose();
  }
}

function briefly(response: WatchResponse): string {
  const parts = [`#${response.watchId} r${response.header?.revision}`];
  if (response.created) parts.push('created');
  if (response.canceled) parts.push('canceled');
  if (response.compactRevision !== 0n) parts.push(`compacted@${response.compactRevision}`);
  if (response.cancelReason !== '') parts.push(`"${response.cancelReason}"`);
  if (response.fragment) parts.push('fragment');
  for (const { type, kv, prevKv } of response.events) {
    const key = Buffer.from(kv?.key ?? []).toString('latin1');
    parts.push(`${type === mvccpb.Event_EventType.PUT ? 'put' : 'delete'} ${key}@${kv?.modRevision}`);
    if (prevKv !== undefined) parts.push(`was ${Buffer.from(prevKv.value).toString('latin1')}`);
  }
  return parts.join(' ');
}
