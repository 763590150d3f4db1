import { v3electionpb } from '@tenure/protocol';
import type { BidiStream, GrpcClient } from './grpc-client.ts';
import type { CallStatus } from './refusal.ts';

/** One Observe call: the leaders of an election, in the order in which they were sent. */
export class ObserveStream {
  readonly #stream: BidiStream<typeof v3electionpb.LeaderRequestSchema, typeof v3electionpb.LeaderResponseSchema>;

  constructor(client: GrpcClient, name: Uint8Array<ArrayBuffer>) {
    this.#stream = client.open(v3electionpb.Election.method.observe, { name });
  }

  get ended(): Promise<CallStatus> {
    return this.#stream.ended;
  }

  next(): Promise<v3electionpb.LeaderResponse> {
    return this.#stream.messages.take('a leader', () => true);
  }

  /** The messages that have arrived and were not taken. */
  arrived(): v3electionpb.LeaderResponse[] {
    return this.#stream.messages.takeArrived(() => true);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#stream.cancel();
  }
}
