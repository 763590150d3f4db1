import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Command, Requester } from '@tenure/core';
import { errorCatalogue, peerpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import { AccessError } from '../../replica/access-error.ts';
import type { Replica } from '../../replica/replica.ts';
import { statusNamed, statusOf, streamStatusOf } from '../../api/status-of.ts';
import type { Random } from '../../random/random.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caller } from '../../api/sliced-work.ts';
import { GrpcCode, GrpcStatus, okStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../../transport/transport.ts';
import {
  commandOfFollower,
  deposed,
  isOverload,
  notAllowed,
  refusalFor,
  type ProposalRefusal,
} from './follower-proposal.ts';
import { channelOf, isNonce, newNonce, noChannel, noNonce, proofOf, proves } from '../link/link-proof.ts';
import type { LinkTranscript } from '../link/link-proof.ts';
import type { LeaderView } from '../link/leader-view.ts';
import { requestedBy, requesterBytes, requesterIn } from '../link/requester-message.ts';
import { SendQueue } from '../link/send-queue.ts';

export interface FollowerLinkOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  /** This server's name in its claims. */
  readonly leaderId: string;
  readonly renew: (id: bigint, by: Requester | undefined) => number | Promise<number> | undefined;
  readonly answer: (path: string, request: Buffer, caller: Caller) => Buffer | Promise<Buffer>;
  /**
   * The leader's check of each command, the same as for a client's: why it is refused, or a promise that rejects with
   * the reason; undefined if it may be appended.
   */
  readonly check: (command: Command, payloadBytes: number) => GrpcStatus | Promise<never> | undefined;
  /** The stream began with a greeting that only a server of the cluster can have made, possibly for another stream. */
  readonly onGreeted: (link: FollowerLink) => void;
  /** Why a server that has proved that it knows the secret may not be linked; undefined if it may. */
  readonly admit: (joining: { readonly memberId: bigint; readonly run: string }) => GrpcStatus | undefined;
  /** The follower was linked. */
  readonly onWelcome: () => void;
  readonly view: () => LeaderView;
}

type Reply = MessageInitShape<typeof peerpb.FromLeaderSchema>;

const noBytes = Buffer.alloc(0);

/** The leader sends entries up to this size to a follower, which reads longer ones from the engine. */
const maxToldBytes = 16 * 1024;

const maxSequence = BigInt(Number.MAX_SAFE_INTEGER);

/** Size limit of a message. A larger reply to a call is sent alone, since a follower's message size is limited. */
const maxMessageBytes = 1024 * 1024;
/** The overhead of an item beside its reply or entry, at most. */
const itemOverheadBytes = 64;
/**
 * Limit on waiting answers of all kinds. Above it the leader stops reading from the follower until the follower reads.
 */
const maxWaitingItems = 65_536;
/** Limit on replies to calls that wait for a follower to read them; more are refused. */
const maxWaitingReplyBytes = 64 * 1024 * 1024;

const wrongSecret = (): GrpcStatus =>
  new GrpcStatus(GrpcCode.permissionDenied, 'the secret of this cluster is another');
/** The two ends do not have one connection: the other one reports what that means. */
const otherChannel = (): GrpcStatus =>
  new GrpcStatus(GrpcCode.failedPrecondition, 'the stream did not come over the TLS connection on which it was opened');
/** Tells a server to try another one. This is not a refusal of etcd, so it does not have etcd's code. */
export const notLeader = (): GrpcStatus => new GrpcStatus(GrpcCode.unavailable, errorCatalogue.NotLeader.text);

/** One stream from a follower, on the leader's side. */
export class FollowerLink {
  memberId = 0n;
  run = '';
  appliedIndex = 0;
  /** The highest kind of command that the follower can apply. */
  newestCommand = 0;
  /** Its greeting was made by a server that knows the secret. It is not proved that it was made for this stream. */
  isGreeted = false;
  /** The nonce of the greeting: of two streams with the same nonce, at most one is from the server that made it. */
  greeting = '';
  /** The follower has proved that it knows the secret, and was linked. */
  welcome = false;
  /** The number of checks since the last message of the follower. */
  silentLooks = 0;
  /** Another run under the same member id that this leader refused to link, if no message arrived here since. */
  #doubtedBy: string | undefined;
  /** That run, once a message has arrived here since its refusal: both processes exist. */
  #rivalRun: string | undefined;
  readonly #call: DuplexCall;
  readonly #options: FollowerLinkOptions;
  readonly #outbox: SendQueue<Reply>;
  /** What the other side's proof must cover; known once it has sent its greeting. */
  #transcript: LinkTranscript | undefined;
  #epoch = 0;
  #toldIndex = 0;
  /** The bytes of call replies that have not been passed to the stream. */
  #waitingReplyBytes = 0;
  #over = false;

  constructor(call: DuplexCall, options: FollowerLinkOptions) {
    this.#call = call;
    this.#options = options;
    this.#outbox = new SendQueue(options.clock, (replies) => this.#send(replies), {
      bytesOf,
      maxBytes: maxMessageBytes,
    });
    call.onDrain = () => {
      this.#outbox.drained();
      call.resume();
    };
    call.onHalfClose = () => this.end(okStatus);
    call.onMessage = (message) => {
      // The bytes of the message are reused after this call, and its payloads go to the log.
      const request = requestIn(Buffer.from(message));
      this.silentLooks = 0;
      this.#rivalRun = this.#doubtedBy ?? this.#rivalRun;
      this.#doubtedBy = undefined;
      if (this.welcome) this.#receive(request);
      else if (this.#transcript === undefined) this.#challenge(request.hello);
      else this.#admit(this.#transcript, request.proof);
      if (this.#outbox.isFull && this.#outbox.size >= maxWaitingItems) call.pause();
    };
  }

  /**
   * Another run under the same member id wants to be linked. Returns whether this one is known to run beside it: its
   * last messages may be those of a process that the other one has replaced, on a connection that broke unnoticed.
   */
  runsBeside(run: string): boolean {
    if (this.#rivalRun === run) return true;
    this.#doubtedBy = run;
    return false;
  }

  end(status: GrpcStatus): void {
    if (this.#over) return;
    this.#over = true;
    this.welcome = false;
    this.#call.end(status);
  }

  /** The call is over, with any status. Outstanding questions of the follower are not answered. */
  closed(): void {
    this.#over = true;
    this.welcome = false;
  }

  /** The leader's view of the cluster. Sent often, as a sign of life of the leader. */
  tell({ index, silent }: LeaderView): void {
    this.#outbox.put({ view: { index: BigInt(index), silent: [...silent] } });
  }

  /** The leader proves first that it knows the secret: a follower sends nothing to a server without it. */
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
    const channel = channelOf(this.#call.connection) ?? noChannel;
    if (Buffer.compare(channel, hello.channel) !== 0) {
      this.end(otherChannel());
      return;
    }
    const leaderNonce = newNonce(this.#options.random);
    const followerNonce = Buffer.from(hello.nonce);
    const said = { clusterId, epoch, leader: leaderId, memberId, run, followerNonce, channel };
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

  /** A link belongs to one epoch: a late proposal must not be appended in a later epoch of the same leader. */
  #leads(): boolean {
    const { replica } = this.#options;
    return replica.leading && replica.state.epoch === this.#epoch;
  }

  #receive(request: peerpb.ToLeader): void {
    const appliedIndex = Number(request.appliedIndex);
    // One append is in flight at a time, so a follower is at most one entry ahead, unless it follows another leader.
    if (appliedIndex > this.#options.replica.position.index + 1) {
      this.end(notLeader());
      return;
    }
    this.appliedIndex = Math.max(this.appliedIndex, appliedIndex);
    for (const proposal of request.proposals) this.#propose(proposal);
    if (request.readIndex !== 0n) this.#answerReadIndex(request.readIndex);
    for (const renewals of request.renewals) void this.#renew(renewals, appliedIndex);
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
    const command = commandOfFollower(encoded, this, replica.state);
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

  /** Many proposals share an entry; one message reports its index. */
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

  /** The leader first applies what the follower has applied, so that it knows a lease granted through the follower. */
  async #renew({ ids, requester }: peerpb.Renewals, appliedIndex: number): Promise<void> {
    const { replica, renew } = this.#options;
    const by = requesterIn(requester);
    if (replica.position.index < appliedIndex) await replica.whenApplied(appliedIndex).catch(() => undefined);
    for (const id of ids) {
      const outcome = this.#leads() ? renew(id, by) : undefined;
      if (outcome === undefined) {
        this.end(notLeader());
        return;
      }
      if (typeof outcome === 'number') this.#renewed(id, by, outcome);
      else {
        // Without an answer the follower asks again, here or at another leader.
        outcome.then(
          (ttlMs) => this.#renewed(id, by, ttlMs),
          (error: unknown) => this.#notRenewed(id, by, error),
        );
      }
    }
  }

  /**
   * A log that accepts no more is no reason to close the link: no other leader exists, and other requests are answered.
   * Nor is a refusal by permission, which is for one client.
   */
  #notRenewed(id: bigint, by: Requester | undefined, error: unknown): void {
    const status = isOverload(error) || error instanceof AccessError ? statusOf(error) : undefined;
    if (status === undefined) this.end(notLeader());
    else if (by === undefined && isOverload(error)) this.#outbox.put({ refusedRenewals: [id] });
    else {
      const { code, message } = status;
      this.#outbox.put({ renewalRefusals: [{ id, code, message, ...requestedBy(by) }] });
    }
  }

  #renewed(id: bigint, by: Requester | undefined, ttlMs: number): void {
    const revision = BigInt(this.#options.replica.state.currentRevision);
    this.#outbox.put({ renewed: [{ id, ttlMs: BigInt(ttlMs), ...requestedBy(by) }], revision });
  }

  async #answerCall({ sequence, path, request, requester }: peerpb.Call): Promise<void> {
    try {
      const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
      const { connection, signal } = this.#call;
      const framed = await this.#options.answer(path, bytes, { connection, signal, requester: requesterIn(requester) });
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
        renewalRefusals: replies.flatMap(({ renewalRefusals }) => renewalRefusals ?? []),
        revision: last?.revision ?? 0n,
        ...(readIndex === undefined ? {} : { readIndex }),
        ...(view === undefined ? {} : { view }),
        ...(appended === undefined ? {} : { appended }),
        calls,
      }),
    );
  }
}

function bytesOf({ calls = [], appended, renewed = [], renewalRefusals = [] }: Reply): number {
  let bytes = itemOverheadBytes + (appended?.entry?.length ?? 0);
  for (const { requester } of renewed) bytes += requesterBytes(requester);
  for (const { requester, message } of renewalRefusals) bytes += requesterBytes(requester) + (message?.length ?? 0);
  for (const { reply, message } of calls) bytes += (reply?.length ?? 0) + (message?.length ?? 0);
  return bytes;
}

/**
 * Throws the status that ends the stream of a client that sent an invalid message: any client can, it is no bug here.
 */
function requestIn(message: Buffer): peerpb.ToLeader {
  try {
    return decodeMessage(peerpb.ToLeaderSchema, message);
  } catch (error) {
    throw streamStatusOf(error) ?? error;
  }
}

/** The run in a process's messages: see Origin. */
function isRun(run: string): boolean {
  return /^\d{1,10}$/.test(run) && Number(run) < 2 ** 32;
}
