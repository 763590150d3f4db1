import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Command } from '@tenure/core';
import { decodeMessage, encodeFramed, peerpb } from '@tenure/protocol';
import { decodeCommand } from '../replica/command-codec.ts';
import type { EncodedCommand } from '../replica/entry-codec.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import type { SharedReplica } from '../replica/shared-replica.ts';
import { statusOf } from '../grpc/status-of.ts';
import { GrpcCode, GrpcStatus } from '../grpc/transport/grpc-status.ts';
import type { DuplexCall } from '../grpc/transport/transport.ts';
import { isNonce, newNonce, proofOf, proves, type LinkTranscript } from './link-proof.ts';
import { Outbox } from './outbox.ts';

/** What the leader tells its followers of the cluster. */
export interface LeaderView {
  /** Where the log ended when it was said. */
  readonly index: number;
  /** Members from whom the leader has heard nothing for a while. */
  readonly silent: readonly bigint[];
}

export interface FollowerLinkOptions {
  readonly replica: SharedReplica;
  /** This server's name in the claims that it makes. */
  readonly leaderId: string;
  readonly renew: (id: bigint) => number | Promise<number> | undefined;
  readonly answer: (path: string, request: Buffer) => Buffer | Promise<Buffer>;
  /** Why a server that has proved that it knows the secret may not be linked; undefined when it may. */
  readonly admit: (joining: { readonly memberId: bigint; readonly run: string }) => GrpcStatus | undefined;
  readonly view: () => LeaderView;
}

type Reply = MessageInitShape<typeof peerpb.FromLeaderSchema>;

const { Refusal_Reason: Reason } = peerpb;
const noBytes = Buffer.alloc(0);

/** A follower is told an entry of up to this size; a longer one it reads from the engine. */
const maxToldBytes = 16 * 1024;

/** What is told together; a larger reply to a call goes alone, since a follower takes no message of any size. */
const maxMessageBytes = 1024 * 1024;
/** What an item takes beside a reply or an entry, at most. */
const itemOverheadBytes = 64;
/** Replies to calls that may wait for a follower to take them; what comes on top is refused. */
const maxWaitingReplyBytes = 64 * 1024 * 1024;

/** What only the leader of an epoch proposes, in that epoch: another server has no business with it. */
const leadersOwn: ReadonlySet<Command['kind']> = new Set([
  'claim',
  'resign',
  'createCluster',
  'heartbeat',
  'expireLeases',
  'checkpointLeases',
  'renewLeases',
  'setTxnLimits',
]);

const notLeader = (): GrpcStatus => new GrpcStatus(GrpcCode.unavailable, 'etcdserver: not leader');

/** One stream from a follower, as the leader serves it. */
export class FollowerLink {
  memberId = 0n;
  run = '';
  appliedIndex = 0;
  /** The highest kind of command that it can apply. */
  newestCommand = 0;
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
    this.#outbox = new Outbox((replies) => this.#send(replies), { bytesOf, maxBytes: maxMessageBytes });
    call.onDrain = () => this.#outbox.drained();
    call.onHalfClose = () => this.end(new GrpcStatus(GrpcCode.ok, ''));
    call.onMessage = (message) => {
      // The bytes of the message are lent, and the payloads in it go to the log.
      const request = requestIn(Buffer.from(message));
      this.silentLooks = 0;
      if (this.welcome) this.#receive(request);
      else if (this.#transcript === undefined) this.#challenge(request.hello);
      else this.#admit(this.#transcript, request.proof);
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
    if (hello === undefined || !isNonce(hello.nonce)) {
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
    const leaderNonce = newNonce();
    const followerNonce = Buffer.from(hello.nonce);
    this.#transcript = { clusterId, epoch, leader: leaderId, memberId, run, followerNonce, leaderNonce };
    const mac = proofOf('leader', secret, this.#transcript);
    this.#call.send(encodeFramed(peerpb.FromLeaderSchema, { challenge: { nonce: leaderNonce, mac } }));
  }

  #admit(transcript: LinkTranscript, proof: peerpb.Proof | undefined): void {
    const { replica, admit } = this.#options;
    if (proof === undefined || !proves(proof.mac, 'follower', replica.state.secret, transcript)) {
      this.end(new GrpcStatus(GrpcCode.permissionDenied, 'the secret of this cluster is another'));
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
    this.#outbox.put({ welcome: true, maxMessageBytes: BigInt(this.#call.maxReceiveBytes) });
    this.tell(this.#options.view());
  }

  /** A link belongs to one epoch: what arrives late must not be appended in a later one of the same leader. */
  #leads(): boolean {
    const { replica } = this.#options;
    return replica.leading && replica.state.epoch === this.#epoch;
  }

  #receive(request: peerpb.ToLeader): void {
    this.appliedIndex = Math.max(this.appliedIndex, Number(request.appliedIndex));
    for (const proposal of request.proposals) this.#propose(proposal);
    if (request.readIndex !== 0n) this.#answerReadIndex(request.readIndex);
    if (request.renewals !== undefined) void this.#renew(request.renewals.ids, Number(request.appliedIndex));
    for (const call of request.calls) void this.#answerCall(call);
  }

  #propose({ sequence, kind, payload }: peerpb.Proposal): void {
    const { replica } = this.#options;
    const refuse = (reason: peerpb.Refusal_Reason): void => this.#outbox.put({ refusals: [{ sequence, reason }] });
    if (!this.#leads()) {
      refuse(Reason.DEPOSED);
      return;
    }
    const encoded = {
      kind,
      payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
      origin: { run: Number(this.run), sequence: Number(sequence) },
    };
    const command = knownCommand(encoded);
    if (command === undefined || leadersOwn.has(command.kind)) {
      refuse(Reason.NOT_ALLOWED);
      return;
    }
    replica.proposeFor(command, encoded).then(
      () => this.#tellAppended(),
      (error: unknown) => refuse(isOverload(error) ? Reason.OVERLOADED : Reason.DEPOSED),
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
      () => this.#outbox.put({ readIndex: { question, index: BigInt(replica.position.index) } }),
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
      const framed = await this.#options.answer(path, bytes);
      if (this.#waitingReplyBytes + this.#call.bufferedBytes >= maxWaitingReplyBytes) {
        throw new GrpcStatus(GrpcCode.resourceExhausted, 'too many bytes of replies wait to be read by a server');
      }
      const reply = framed.subarray(5);
      this.#waitingReplyBytes += reply.length;
      this.#outbox.put({ calls: [{ sequence, code: 0, reply }] });
    } catch (error) {
      const status =
        error instanceof GrpcStatus ? error : new GrpcStatus(GrpcCode.unavailable, 'etcdserver: no leader');
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
    throw statusOf(error) ?? error;
  }
}

function isOverload(error: unknown): boolean {
  return error instanceof ProposalError && error.code === 'overloaded';
}

/** Undefined for a command of a newer version, which must not come into a log that this server leads. */
function knownCommand(encoded: EncodedCommand): Command | undefined {
  try {
    return decodeCommand(encoded);
  } catch {
    return undefined;
  }
}
