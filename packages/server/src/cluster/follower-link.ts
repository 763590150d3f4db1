import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Command } from '@tenure/core';
import { errorCatalogue, peerpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import type { Replica } from '../replica/replica.ts';
import { statusNamed, streamStatusOf } from '../api/status-of.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import type { Caller } from '../api/sliced-work.ts';
import { GrpcCode, GrpcStatus } from '../transport/grpc-status.ts';
import type { DuplexCall } from '../transport/transport.ts';
import {
  commandOfFollower,
  deposed,
  isOverload,
  notAllowed,
  refusalFor,
  type ProposalRefusal,
} from './follower-proposal.ts';
import { isNonce, newNonce, noNonce, proofOf, proves, type LinkTranscript } from './link-proof.ts';
import { Outbox } from './outbox.ts';

/** What the leader tells its followers of the cluster. */
export interface LeaderView {
  /** Where the log ended when it was said. */
  readonly index: number;
  /** Members from whom the leader has heard nothing for a while. */
  readonly silent: readonly bigint[];
}

export interface FollowerLinkOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  /** This server's name in the claims that it makes. */
  readonly leaderId: string;
  readonly renew: (id: bigint) => number | Promise<number> | undefined;
  readonly answer: (path: string, request: Buffer, caller: Caller) => Buffer | Promise<Buffer>;
  /**
   * What the leader asks of each command, as it would of a client's: why it is refused, or a promise that rejects with
   * that; undefined where it may be appended.
   */
  readonly check: (command: Command, payloadBytes: number) => GrpcStatus | Promise<never> | undefined;
  /** The stream has begun with a greeting that only a server can have made, if perhaps not for this stream. */
  readonly onGreeted: (link: FollowerLink) => void;
  /** Why a server that has proved that it knows the secret may not be linked; undefined when it may. */
  readonly admit: (joining: { readonly memberId: bigint; readonly run: string }) => GrpcStatus | undefined;
  /** It was taken. */
  readonly onWelcome: () => void;
  readonly view: () => LeaderView;
}

type Reply = MessageInitShape<typeof peerpb.FromLeaderSchema>;

const noBytes = Buffer.alloc(0);

/** A follower is told an entry of up to this size; a longer one it reads from the engine. */
const maxToldBytes = 16 * 1024;

const maxSequence = BigInt(Number.MAX_SAFE_INTEGER);

/** What is told together; a larger reply to a call goes alone, since a follower takes no message of any size. */
const maxMessageBytes = 1024 * 1024;
/** What an item takes beside a reply or an entry, at most. */
const itemOverheadBytes = 64;
/** Answers of all kinds that may wait; with more of them the follower is not read on until it has read. */
const maxWaitingItems = 65_536;
/** Replies to calls that may wait for a follower to take them; what comes on top is refused. */
const maxWaitingReplyBytes = 64 * 1024 * 1024;

const wrongSecret = (): GrpcStatus =>
  new GrpcStatus(GrpcCode.permissionDenied, 'the secret of this cluster is another');
/** To a server it says that another one is to be asked, and so not with etcd's code. */
export const notLeader = (): GrpcStatus => new GrpcStatus(GrpcCode.unavailable, errorCatalogue.NotLeader.text);

/** One stream from a follower, as the leader serves it. */
export class FollowerLink {
  memberId = 0n;
  run = '';
  appliedIndex = 0;
  /** The highest kind of command that it can apply. */
  newestCommand = 0;
  /** Its greeting was made by somebody who knows the secret; that it was made for this stream is not proved. */
  isGreeted = false;
  /** The nonce of that greeting: two streams that have the same are not both of the server that made it. */
  greeting = '';
  /** It has proved that it knows the secret, and was taken. */
  welcome = false;
  /** How often it was looked at since something came from it. */
  silentLooks = 0;
  readonly #call: DuplexCall;
  readonly #options: FollowerLinkOptions;
  readonly #outbox: Outbox<Reply>;
  /** What the proof of the other side must be about; there once it has said who it is. */
  #transcript: LinkTranscript | undefined;
  #epoch = 0;
  #toldIndex = 0;
  /** Of the replies to calls that have not been handed to the stream. */
  #waitingReplyBytes = 0;
  #over = false;

  constructor(call: DuplexCall, options: FollowerLinkOptions) {
    this.#call = call;
    this.#options = options;
    this.#outbox = new Outbox(options.clock, (replies) => this.#send(replies), { bytesOf, maxBytes: maxMessageBytes });
    call.onDrain = () => {
      this.#outbox.drained();
      call.resume();
    };
    call.onHalfClose = () => this.end(new GrpcStatus(GrpcCode.ok, ''));
    call.onMessage = (message) => {
      // The bytes of the message are lent, and the payloads in it go to the log.
      const request = requestIn(Buffer.from(message));
      this.silentLooks = 0;
      if (this.welcome) this.#receive(request);
      else if (this.#transcript === undefined) this.#challenge(request.hello);
      else this.#admit(this.#transcript, request.proof);
      if (this.#outbox.isFull && this.#outbox.size >= maxWaitingItems) call.pause();
    };
  }

  end(status: GrpcStatus): void {
    if (this.#over) return;
    this.#over = true;
    this.welcome = false;
    this.#call.end(status);
  }

  /** The call is over, however it ended: what it said is answered to nobody. */
  closed(): void {
    this.#over = true;
    this.welcome = false;
  }

  /** What the leader knows of the cluster: sent often, so that the follower hears that the leader lives. */
  tell({ index, silent }: LeaderView): void {
    this.#outbox.put({ view: { index: BigInt(index), silent: [...silent] } });
  }

  /** This side proves first that it knows the secret: a follower tells nothing to a server that does not. */
  #challenge(hello: peerpb.Hello | undefined): void {
    const { replica, leaderId } = this.#options;
    if (hello === undefined || !isNonce(hello.nonce) || !isRun(hello.run)) {
      this.end(new GrpcStatus(GrpcCode.invalidArgument, 'a stream between servers begins with a greeting'));
      return;
    }
    this.#epoch = Number(hello.epoch);
    this.newestCommand = hello.newestCommand;
    if (!this.#leads()) {
      this.end(notLeader());
      return;
    }
    const { clusterId, secret } = replica.state;
    const { memberId, run, epoch } = hello;
    const leaderNonce = newNonce(this.#options.random);
    const followerNonce = Buffer.from(hello.nonce);
    const said = { clusterId, epoch, leader: leaderId, memberId, run, followerNonce };
    if (hello.mac.length > 0) {
      if (!proves(hello.mac, 'greeting', secret, { ...said, leaderNonce: noNonce })) {
        this.end(wrongSecret());
        return;
      }
      this.isGreeted = true;
      this.greeting = followerNonce.toString('hex');
      this.#options.onGreeted(this);
      if (this.#over) return;
    }
    this.#transcript = { ...said, leaderNonce };
    const mac = proofOf('leader', secret, this.#transcript);
    this.#call.send(encodeFramed(peerpb.FromLeaderSchema, { challenge: { nonce: leaderNonce, mac } }));
  }

  #admit(transcript: LinkTranscript, proof: peerpb.Proof | undefined): void {
    const { replica, admit } = this.#options;
    if (proof === undefined || !proves(proof.mac, 'follower', replica.state.secret, transcript)) {
      this.end(wrongSecret());
      return;
    }
    if (!this.#leads()) {
      this.end(notLeader());
      return;
    }
    const refusal = admit(transcript);
    if (refusal !== undefined) {
      this.end(refusal);
      return;
    }
    this.memberId = transcript.memberId;
    this.run = transcript.run;
    this.welcome = true;
    this.#call.trustPeer();
    this.#options.onWelcome();
    this.#outbox.put({ welcome: true, maxMessageBytes: BigInt(this.#call.maxReceiveBytes) });
    this.tell(this.#options.view());
  }

  /** A link belongs to one epoch: what arrives late must not be appended in a later one of the same leader. */
  #leads(): boolean {
    const { replica } = this.#options;
    return replica.leading && replica.state.epoch === this.#epoch;
  }

  #receive(request: peerpb.ToLeader): void {
    const appliedIndex = Number(request.appliedIndex);
    // One append is out at a time, so another server is one entry ahead at most, or follows another leader.
    if (appliedIndex > this.#options.replica.position.index + 1) {
      this.end(notLeader());
      return;
    }
    this.appliedIndex = Math.max(this.appliedIndex, appliedIndex);
    for (const proposal of request.proposals) this.#propose(proposal);
    if (request.readIndex !== 0n) this.#answerReadIndex(request.readIndex);
    if (request.renewals !== undefined) void this.#renew(request.renewals.ids, appliedIndex);
    for (const call of request.calls) void this.#answerCall(call);
  }

  #propose({ sequence, kind, payload }: peerpb.Proposal): void {
    const { replica, check } = this.#options;
    const refuse = (why: ProposalRefusal): void => this.#outbox.put({ refusals: [{ sequence, ...why }] });
    if (!this.#leads()) {
      refuse(deposed);
      return;
    }
    const encoded = {
      kind,
      payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
      origin: { run: Number(this.run), sequence: Number(sequence) },
    };
    const command = commandOfFollower(encoded, this.memberId);
    if (command === undefined || sequence > maxSequence) {
      refuse(notAllowed);
      return;
    }
    const refusal = check(command, payload.length);
    if (refusal instanceof GrpcStatus) {
      refuse(refusalFor(refusal));
      return;
    }
    (refusal ?? replica.proposeFor(command, encoded)).then(
      () => this.#tellAppended(),
      (error: unknown) => refuse(refusalFor(error)),
    );
  }

  /** Many proposals share an entry, and one word of it is enough. */
  #tellAppended(): void {
    const last = this.#options.replica.lastAppended;
    if (last === undefined || last.position.index <= this.#toldIndex) return;
    const { index, hash } = last.position;
    this.#toldIndex = index;
    const entry = last.bytes.length <= maxToldBytes ? Buffer.from(last.bytes) : noBytes;
    this.#outbox.put({ appended: { index: BigInt(index), hash, entry } });
  }

  #answerReadIndex(question: bigint): void {
    const { replica } = this.#options;
    replica.confirm().then(
      () => {
        const { index, hash } = replica.position;
        this.#outbox.put({ readIndex: { question, index: BigInt(index), hash } });
      },
      () => this.end(notLeader()),
    );
  }

  /** What the follower has seen applied is applied here first, so that a lease that was granted through it is known. */
  async #renew(ids: readonly bigint[], appliedIndex: number): Promise<void> {
    const { replica, renew } = this.#options;
    if (replica.position.index < appliedIndex) await replica.whenApplied(appliedIndex).catch(() => undefined);
    for (const id of ids) {
      const outcome = this.#leads() ? renew(id) : undefined;
      if (outcome === undefined) {
        this.end(notLeader());
        return;
      }
      if (typeof outcome === 'number') this.#renewed(id, outcome);
      else {
        // Without an answer the follower asks again, here or elsewhere.
        outcome.then(
          (ttlMs) => this.#renewed(id, ttlMs),
          (error: unknown) => this.#notRenewed(id, error),
        );
      }
    }
  }

  /** A log that takes no more is no reason to part: there is no other leader, and all else is still answered. */
  #notRenewed(id: bigint, error: unknown): void {
    if (isOverload(error)) this.#outbox.put({ refusedRenewals: [id] });
    else this.end(notLeader());
  }

  #renewed(id: bigint, ttlMs: number): void {
    const revision = BigInt(this.#options.replica.state.currentRevision);
    this.#outbox.put({ renewed: [{ id, ttlMs: BigInt(ttlMs) }], revision });
  }

  async #answerCall({ sequence, path, request }: peerpb.Call): Promise<void> {
    try {
      const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
      const framed = await this.#options.answer(path, bytes, this.#call);
      if (this.#waitingReplyBytes + this.#call.bufferedBytes >= maxWaitingReplyBytes) {
        throw new GrpcStatus(GrpcCode.resourceExhausted, 'too many bytes of replies wait to be read by a server');
      }
      const reply = framed.subarray(frameHeadroomBytes);
      this.#waitingReplyBytes += reply.length;
      this.#outbox.put({ calls: [{ sequence, code: 0, reply }] });
    } catch (error) {
      const status = error instanceof GrpcStatus ? error : statusNamed('NoLeader');
      this.#outbox.put({ calls: [{ sequence, code: status.code, message: status.message }] });
    }
  }

  #send(replies: readonly Reply[]): boolean {
    if (this.#over) return true;
    const calls = replies.flatMap((reply) => reply.calls ?? []);
    for (const { reply } of calls) this.#waitingReplyBytes -= reply?.length ?? 0;
    const last = replies.findLast(({ revision }) => revision !== undefined);
    const view = replies.findLast((reply) => reply.view !== undefined)?.view;
    const appended = replies.findLast((reply) => reply.appended !== undefined)?.appended;
    const readIndex = replies.findLast((reply) => reply.readIndex !== undefined)?.readIndex;
    const maxMessageBytes = replies.find((reply) => reply.maxMessageBytes !== undefined)?.maxMessageBytes ?? 0n;
    return this.#call.send(
      encodeFramed(peerpb.FromLeaderSchema, {
        welcome: replies.some(({ welcome }) => welcome === true),
        maxMessageBytes,
        refusals: replies.flatMap(({ refusals }) => refusals ?? []),
        renewed: replies.flatMap(({ renewed }) => renewed ?? []),
        refusedRenewals: replies.flatMap(({ refusedRenewals }) => refusedRenewals ?? []),
        revision: last?.revision ?? 0n,
        ...(readIndex === undefined ? {} : { readIndex }),
        ...(view === undefined ? {} : { view }),
        ...(appended === undefined ? {} : { appended }),
        calls,
      }),
    );
  }
}

function bytesOf({ calls = [], appended }: Reply): number {
  let bytes = itemOverheadBytes + (appended?.entry?.length ?? 0);
  for (const { reply, message } of calls) bytes += (reply?.length ?? 0) + (message?.length ?? 0);
  return bytes;
}

/** Throws the status that ends the stream of whoever has sent something else: anybody can, it is no defect of ours. */
function requestIn(message: Buffer): peerpb.ToLeader {
  try {
    return decodeMessage(peerpb.ToLeaderSchema, message);
  } catch (error) {
    throw streamStatusOf(error) ?? error;
  }
}

/** How a process names its run: see Origin. */
function isRun(run: string): boolean {
  return /^\d{1,10}$/.test(run) && Number(run) < 2 ** 32;
}
