import { etcdserverpb } from '@tenure/protocol';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { BidiStream, CallOptions, GrpcClient } from './grpc-client.ts';
import type { CallStatus } from './refusal.ts';

type Stream = BidiStream<typeof etcdserverpb.WatchRequestSchema, typeof etcdserverpb.WatchResponseSchema>;
/** What a watch is asked for, as `create` takes it. */
export type WatchCreate = MessageInitShape<typeof etcdserverpb.WatchCreateRequestSchema>;
type WatchResponse = etcdserverpb.WatchResponse;

/** The watch id of a reply that belongs to the stream and to no watch. */
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

  /** Asks for a watch and waits for the reply that says it was created, or refused. */
  create(request: WatchCreate): Promise<WatchResponse> {
    this.send({ case: 'createRequest', value: request });
    return this.#stream.messages.take('a created watch', (response) => response.created || response.canceled);
  }

  /** Asks for the end of a watch and waits for the reply that says it has ended. */
  cancel(watchId: bigint): Promise<WatchResponse> {
    this.send({ case: 'cancelRequest', value: { watchId } });
    return this.canceled(watchId);
  }

  canceled(watchId: bigint): Promise<WatchResponse> {
    return this.#stream.messages.take(`the end of watch ${watchId}`, (r) => r.canceled && r.watchId === watchId);
  }

  /** Asks where the stream is. The answer is about the stream, not about one watch. */
  progress(): Promise<WatchResponse> {
    this.send({ case: 'progressRequest', value: {} });
    return this.#stream.messages.take('a progress reply', (r) => r.watchId === noWatchId && !r.canceled);
  }

  /** The next reply about a watch, whatever it says. */
  next(watchId: bigint): Promise<WatchResponse> {
    return this.#stream.messages.take(`a reply to watch ${watchId}`, (response) => response.watchId === watchId);
  }

  /** All replies to a watch until they hold that many events; throws when they hold more, or one of another kind. */
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

  /** What has arrived for a watch and was not taken. Meaningful after something that was sent later has been taken. */
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
