import { etcdserverpb } from '@tenure/protocol';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { BidiStream, CallOptions, GrpcClient } from './grpc-client.ts';
import type { CallStatus } from './refusal.ts';

type Stream = BidiStream<typeof etcdserverpb.WatchRequestSchema, typeof etcdserverpb.WatchResponseSchema>;
/** The options of a watch, as an argument of `create`. */
export type WatchCreate = MessageInitShape<typeof etcdserverpb.WatchCreateRequestSchema>;
type WatchResponse = etcdserverpb.WatchResponse;

/** The watch id of a reply that belongs to the stream and not to a watch. */
export const noWatchId = -1n;

/** One Watch call. Replies about one watch are awaited by its id, so that several watches can share the stream. */
export class WatchStream {
  readonly #stream: Stream;

  constructor(client: GrpcClient, options: CallOptions = {}) {
    this.#stream = client.bidi(etcdserverpb.Watch.method.watch, options);
  }

  get ended(): Promise<CallStatus> {
    return this.#stream.ended;
  }

  send(union: MessageInitShape<typeof etcdserverpb.WatchRequestSchema>['requestUnion']): void {
    this.#stream.send(union === undefined ? {} : { requestUnion: union });
  }

  sendRaw(request: Uint8Array): void {
    this.#stream.sendRaw(request);
  }

  /** Requests a watch and waits for the reply that it was created, or refused. */
  create(request: WatchCreate): Promise<WatchResponse> {
    this.send({ case: 'createRequest', value: request });
    return this.#stream.messages.take('a created watch', (response) => response.created || response.canceled);
  }

  /** Cancels a watch and waits for the reply that it has ended. */
  cancel(watchId: bigint): Promise<WatchResponse> {
    this.send({ case: 'cancelRequest', value: { watchId } });
    return this.canceled(watchId);
  }

  canceled(watchId: bigint): Promise<WatchResponse> {
    return this.#stream.messages.take(`the end of watch ${watchId}`, (r) => r.canceled && r.watchId === watchId);
  }

  /** Requests the progress of the stream, not of one watch. */
  progress(): Promise<WatchResponse> {
    this.send({ case: 'progressRequest', value: {} });
    return this.#stream.messages.take('a progress reply', (r) => r.watchId === noWatchId && !r.canceled);
  }

  /** The next reply about a watch, of any kind. */
  next(watchId: bigint): Promise<WatchResponse> {
    return this.#stream.messages.take(`a reply to watch ${watchId}`, (response) => response.watchId === watchId);
  }

  /** All replies to a watch until they have that many events; throws when they have more, or another kind of reply. */
  async replies(watchId: bigint, eventCount: number): Promise<WatchResponse[]> {
    const replies: WatchResponse[] = [];
    for (let seen = 0; seen < eventCount;) {
      const reply = await this.next(watchId);
      if (reply.events.length === 0)
        throw new Error(`a reply without events came: ${JSON.stringify(reply.cancelReason)}`);
      replies.push(reply);
      seen += reply.events.length;
      if (seen > eventCount) throw new Error(`${seen} events came where ${eventCount} were expected`);
    }
    return replies;
  }

  async events(watchId: bigint, eventCount: number): Promise<WatchResponse['events']> {
    return (await this.replies(watchId, eventCount)).flatMap((reply) => reply.events);
  }

  /** The replies of a watch that have arrived and were not taken. Meaningful after a later reply has been taken. */
  arrived(watchId: bigint): WatchResponse[] {
    return this.#stream.messages.takeArrived((response) => response.watchId === watchId);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  halfClose(): void {
    this.#stream.halfClose();
  }

  close(): void {
    this.#stream.cancel();
  }
}
