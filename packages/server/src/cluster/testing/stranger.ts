import { create, fromBinary, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { peerpb } from '@tenure/protocol';
import { expect, vi } from 'vitest';
import { newNonce, noChannel, noNonce, proofOf, type LinkTranscript } from '../link/link-proof.ts';
import type { LeadingServer } from './leading-server.ts';
import { systemRandom } from '../../random/system-random.ts';

export const patience = { timeout: 20_000, interval: 20 };

export function clientOf(address: string): grpc.Client {
  return new grpc.Client(address, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
}

/** A stream whose messages the test chooses. */
export class Stranger {
  static readonly #all: Stranger[] = [];
  readonly #call: grpc.ClientDuplexStream<Buffer, peerpb.FromLeader>;
  readonly #client: grpc.Client;
  readonly #replies: peerpb.FromLeader[] = [];
  status: { code: number; details: string } | undefined;

  /** On a connection of its own, unless one is given. */
  constructor({ address }: LeadingServer, client: grpc.Client = clientOf(address)) {
    this.#call = client.makeBidiStreamRequest(
      '/tenure.peer.v1.Peer/Link',
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => fromBinary(peerpb.FromLeaderSchema, bytes),
    );
    this.#call.on('data', (reply: peerpb.FromLeader) => this.#replies.push(reply));
    this.#call.on('error', () => {});
    this.#call.on('status', ({ code, details }) => (this.status = { code, details }));
    Stranger.#all.push(this);
    this.#client = client;
  }

  static cancelAll(): void {
    for (const { call, client } of Stranger.#all.splice(0).map((one) => ({ call: one.#call, client: one.#client }))) {
      call.cancel();
      client.close();
    }
  }

  get isWelcome(): boolean {
    return this.#replies.some(({ welcome }) => welcome);
  }

  get refusals(): peerpb.Refusal[] {
    return this.#replies.flatMap(({ refusals }) => refusals);
  }

  say(message: MessageInitShape<typeof peerpb.ToLeaderSchema>): void {
    this.sayBytes(Buffer.from(toBinary(peerpb.ToLeaderSchema, create(peerpb.ToLeaderSchema, message))));
  }

  sayBytes(bytes: Buffer): void {
    this.#call.write(bytes);
  }

  /** Sends a greeting and every proof that a server of the cluster can make. */
  async join(
    server: LeadingServer,
    as: { readonly memberId?: bigint; readonly run?: string; readonly newestCommand?: number } = {},
  ): Promise<void> {
    const { transcript } = await this.hello(server, as);
    this.say({ proof: { mac: proofOf('follower', server.replica.state.secret, transcript) } });
    await this.welcomed();
  }

  /** Sends a greeting; returns the transcript and the leader's proof. */
  async hello(
    server: LeadingServer,
    { memberId = 2n, run = '5', nonce = newNonce(systemRandom), isGreeting = true, newestCommand = 0 } = {},
  ): Promise<{ transcript: LinkTranscript; mac: Uint8Array }> {
    const { clusterId, epoch } = server.replica.state;
    const said = {
      clusterId,
      epoch: BigInt(epoch),
      leader: server.leader,
      memberId,
      run,
      followerNonce: nonce,
      channel: noChannel,
    };
    const mac = isGreeting
      ? proofOf('greeting', server.replica.state.secret, { ...said, leaderNonce: noNonce })
      : noNonce;
    this.say({ hello: { memberId, run, epoch: BigInt(epoch), nonce, mac, newestCommand } });
    const challenge = await vi.waitFor(() => {
      const found = this.#replies.find((reply) => reply.challenge !== undefined)?.challenge;
      if (found === undefined) throw new Error(`no challenge came: ${JSON.stringify(this.status)}`);
      return found;
    }, patience);
    return { transcript: { ...said, leaderNonce: challenge.nonce }, mac: challenge.mac };
  }

  ended(): Promise<{ code: number; details: string }> {
    return vi.waitFor(() => {
      if (this.status === undefined) throw new Error('the stream is still open');
      return this.status;
    }, patience);
  }

  welcomed(): Promise<void> {
    return vi.waitFor(() => expect(this.isWelcome, JSON.stringify(this.status)).toBe(true), patience);
  }
}
