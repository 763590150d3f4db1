import { create, fromBinary, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import type { Requester } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { frameHeadroomBytes } from '@tenure/codec';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { Random } from '../../random/random.ts';
import type { Clock } from '../../time/clock.ts';
import type { Acknowledged } from '../../engines/log-engine.ts';
import type { LeaderLink } from '../../replica/leader-link.ts';
import type { PendingProposal } from '../../replica/pending-proposals.ts';
import { newestCommandKind } from '../../replica/command-codec.ts';
import { ProposalError } from '../../replica/proposal-error.ts';
import { isNonce, newNonce, noChannel, noNonce, proofOf, proves, type LinkTranscript } from '../link/link-proof.ts';
import type { LeaderView } from '../link/leader-view.ts';
import { requestedBy, requesterBytes, requesterIn, type RequesterMessage } from '../link/requester-message.ts';
import type { LeaderStream, LinkEnd, OpenLeaderStream } from './leader-stream.ts';
import { SendQueue } from '../link/send-queue.ts';
import type { AskedRenewal } from './renewal-forwarder.ts';

export interface LeaderConnectionOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly open: OpenLeaderStream;
  /** See OpenLeaderStream. */
  readonly url: string;
  readonly epoch: number;
  readonly memberId: bigint;
  readonly run: number;
  /** The leader's name in the claim of that epoch. */
  readonly leader: string;
  readonly clusterId: bigint;
  readonly secret: string;
  readonly appliedIndex: () => number;
  /** The leader has accepted this server. */
  readonly onWelcome: (connection: LeaderConnection) => void;
  readonly onRenewed: (renewal: AskedRenewal, ttlMs: number, revision: number) => void;
  /** The leader has not renewed the lease, and did not change it; the error is for the client. */
  readonly onRenewalRefused: (renewal: AskedRenewal, error: ProposalError | GrpcStatus) => void;
  readonly onReturned: (sequence: number, epoch: number) => void;
  /** The log has entries up to `index` at least: they hold this server's proposals, or what a read here waits for. */
  readonly onAppended: (index: number, acknowledged?: Acknowledged) => void;
  /** The proposal was not appended; the error is for its proposer. */
  readonly onRefused: (sequence: number, error: ProposalError | GrpcStatus) => void;
  readonly onView: (view: LeaderView) => void;
  /** The stream is over. Called once, also if the leader never accepted this server. */
  readonly onClosed: (connection: LeaderConnection, status: LinkEnd) => void;
}

type Request = MessageInitShape<typeof peerpb.ToLeaderSchema>;
type Call = NonNullable<Request['calls']>[number];
type Renewals = NonNullable<Request['renewals']>[number];

/**
 * The leader accepts a message of the largest request size plus half a MiB. A larger item is sent alone, and items sent
 * together stay below this.
 */
const maxToldBytes = 256 * 1024;
/** The overhead of a message beside the payload, or path and request, of its only item, at most. */
const messageOverheadBytes = 128;
/** The overhead of an item beside its payload, at most: tags, lengths, a sequence, an id. */
const itemOverheadBytes = 32;
const { Refusal_Reason: Reason } = peerpb;

interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** A follower's stream to the leader of one epoch. */
export class LeaderConnection implements LeaderLink {
  readonly epoch: number;
  readonly #options: LeaderConnectionOptions;
  readonly #stream: LeaderStream;
  readonly #outbox: SendQueue<Request>;
  readonly #questions = new Map<bigint, Waiting<number>>();
  readonly #calls = new Map<bigint, Waiting<Buffer>>();
  readonly #nonce: Buffer;
  /** See LinkTranscript. */
  #channel = noChannel;
  #sequence = 0n;
  /** The largest message that the leader accepts. Its limits may be lower than those of this server. */
  #maxMessageBytes = Infinity;
  #closed = false;
  /** The other side has proved that it knows the secret. */
  #isProved = false;
  /** Why this side has ended the stream. */
  #complaint: string | undefined;

  constructor(options: LeaderConnectionOptions) {
    this.epoch = options.epoch;
    this.#options = options;
    const { clock, random, open, url } = options;
    this.#nonce = newNonce(random);
    const send = (requests: readonly Request[]): boolean => this.#write(this.#merged(requests));
    this.#outbox = new SendQueue(clock, send, { bytesOf, maxBytes: maxToldBytes });
    this.#stream = open(url, {
      onOpen: (channel) => this.#greet(channel),
      onMessage: (bytes) => this.#receiveBytes(bytes),
      onDrain: () => this.#outbox.drained(),
      onEnd: (end) => this.#over(end),
    });
  }

  #greet(channel: Uint8Array = noChannel): void {
    this.#channel = channel;
    const { epoch, memberId, run, secret } = this.#options;
    const mac = proofOf('greeting', secret, this.#transcript(noNonce));
    const hello = { memberId, nonce: this.#nonce, run: String(run), epoch: BigInt(epoch), mac, channel };
    this.#write({ hello: { ...hello, newestCommand: newestCommandKind } });
  }

  propose({ encoded }: PendingProposal): void {
    const { kind, payload, origin } = encoded;
    if (this.#isTooLarge(payload.length)) {
      this.#options.onRefused(origin.sequence, tooLarge());
      return;
    }
    this.#outbox.put({ proposals: [{ sequence: BigInt(origin.sequence), kind, payload }] });
  }

  readIndex(): Promise<number> {
    const question = (this.#sequence += 1n);
    return this.#waitFor(this.#questions, question, { readIndex: question });
  }

  /** The answer arrives through `onRenewed` or `onRenewalRefused`, or not at all. */
  renew({ id, by }: AskedRenewal): void {
    this.#outbox.put({ renewals: [{ ids: [id], ...requestedBy(by) }] });
  }

  /** Resolves with the leader's reply; rejects with its GrpcStatus, or when the stream breaks. */
  call(path: string, request: Buffer, by: Requester | undefined): Promise<Buffer> {
    const call = { path, request: Buffer.from(request), ...requestedBy(by) };
    if (this.#isTooLarge(bytesOfCall(call))) return Promise.reject(tooLarge());
    const sequence = (this.#sequence += 1n);
    return this.#waitFor(this.#calls, sequence, { calls: [{ sequence, ...call }] });
  }

  /** Reports the index up to which this server has applied the log. */
  report(): void {
    this.#outbox.put({});
  }

  close(): void {
    this.#stream.cancel();
  }

  /** False when the stream is full. */
  #write(request: Request): boolean {
    return this.#stream.write(toBinary(peerpb.ToLeaderSchema, create(peerpb.ToLeaderSchema, request)));
  }

  #receiveBytes(bytes: Buffer): void {
    let reply: peerpb.FromLeader;
    try {
      reply = fromBinary(peerpb.FromLeaderSchema, bytes);
    } catch {
      this.#stream.cancel(GrpcCode.internal, 'the leader sent an invalid message');
      return;
    }
    this.#receive(reply);
  }

  #isTooLarge(bytes: number): boolean {
    return bytes + messageOverheadBytes > this.#maxMessageBytes;
  }

  #waitFor<T>(waiting: Map<bigint, Waiting<T>>, key: bigint, request: Request): Promise<T> {
    if (this.#closed) return Promise.reject(new ProposalError('deposed', 'the stream to the leader is over'));
    return new Promise((resolve, reject) => {
      waiting.set(key, { resolve, reject });
      this.#outbox.put(request);
    });
  }

  #merged(requests: readonly Request[]): Request {
    return {
      proposals: requests.flatMap(({ proposals }) => proposals ?? []),
      renewals: renewalsIn(requests),
      readIndex: requests.findLast(({ readIndex }) => readIndex !== undefined)?.readIndex ?? 0n,
      calls: requests.flatMap(({ calls }) => calls ?? []),
      appliedIndex: BigInt(this.#options.appliedIndex()),
    };
  }

  #receive(reply: peerpb.FromLeader): void {
    const { onRenewed, onRenewalRefused, onReturned, onRefused, onView, onAppended } = this.#options;
    if (!this.#isProved) {
      this.#prove(reply.challenge);
      return;
    }
    if (reply.welcome) this.#welcomed(reply);
    if (reply.view !== undefined) onView({ index: Number(reply.view.index), silent: reply.view.silent });
    for (const { sequence, reason, code, message } of reply.refusals) {
      if (reason === Reason.DEPOSED) onReturned(Number(sequence), this.epoch);
      else if (reason === Reason.OVERLOADED) onRefused(Number(sequence), overloaded());
      else if (reason === Reason.REFUSED) onRefused(Number(sequence), new GrpcStatus(code as GrpcCode, message));
      else
        onRefused(Number(sequence), new ProposalError('stopped', 'the leader does not take this from another server'));
    }
    if (reply.appended !== undefined) {
      const { hash, entry: bytes } = reply.appended;
      const index = Number(reply.appended.index);
      onAppended(index, { position: { index, hash }, ...(bytes.length > 0 ? { bytes } : {}) });
    }
    if (reply.readIndex !== undefined) {
      const { hash } = reply.readIndex;
      const index = Number(reply.readIndex.index);
      if (hash === '') onAppended(index);
      else onAppended(index, { position: { index, hash } });
    }
    for (const { id, ttlMs, requester } of reply.renewed) {
      onRenewed({ id, by: requesterIn(requester) }, Number(ttlMs), Number(reply.revision));
    }
    for (const id of reply.refusedRenewals) onRenewalRefused({ id, by: undefined }, overloaded());
    for (const { id, requester, code, message } of reply.renewalRefusals) {
      onRenewalRefused({ id, by: requesterIn(requester) }, new GrpcStatus(code as GrpcCode, message));
    }
    if (reply.readIndex !== undefined) this.#answered(reply.readIndex);
    for (const call of reply.calls) this.#calledBack(call);
  }

  #welcomed({ maxMessageBytes }: peerpb.FromLeader): void {
    if (maxMessageBytes > 0n) this.#maxMessageBytes = Number(maxMessageBytes);
    this.#options.onWelcome(this);
  }

  /** The leader proves first: a server that has taken its address learns nothing from this side. */
  #prove(challenge: peerpb.Challenge | undefined): void {
    const { url, secret } = this.#options;
    const transcript = this.#transcript(challenge?.nonce ?? noNonce);
    const isGood =
      challenge !== undefined && isNonce(challenge.nonce) && proves(challenge.mac, 'leader', secret, transcript);
    if (!isGood) {
      this.#complaint = impostorAt(url);
      this.close();
      return;
    }
    this.#isProved = true;
    this.#write({ proof: { mac: proofOf('follower', secret, transcript) } });
  }

  #transcript(leaderNonce: Uint8Array): LinkTranscript {
    const { clusterId, epoch, leader, memberId, run } = this.#options;
    const said = { clusterId, epoch: BigInt(epoch), leader, memberId, run: String(run) };
    return { ...said, followerNonce: this.#nonce, leaderNonce, channel: this.#channel };
  }

  /** A later question covers the earlier ones. */
  #answered({ question, index }: peerpb.ReadIndex): void {
    for (const [asked, { resolve }] of this.#questions) {
      if (asked > question) return;
      this.#questions.delete(asked);
      resolve(Number(index));
    }
  }

  #calledBack({ sequence, code, message, reply }: peerpb.CallReply): void {
    const waiting = this.#calls.get(sequence);
    if (waiting === undefined) return;
    this.#calls.delete(sequence);
    if (code === 0) waiting.resolve(Buffer.concat([Buffer.alloc(frameHeadroomBytes), reply]));
    else waiting.reject(new GrpcStatus(code as GrpcCode, message));
  }

  /** What a server means that rejects this side's greeting. */
  #suspicion(code: number): string | undefined {
    const { url } = this.#options;
    // It cannot prove that it knows the secret either.
    if (code === GrpcCode.permissionDenied) return impostorAt(url);
    if (code !== GrpcCode.failedPrecondition) return undefined;
    return (
      `between this server and the one at ${url} something ends TLS, a proxy or an attacker: servers must reach each ` +
      'other directly'
    );
  }

  #over(status: LinkEnd): void {
    if (this.#closed) return;
    this.#closed = true;
    const details = this.#complaint ?? (this.#isProved ? undefined : this.#suspicion(status.code)) ?? status.details;
    const lost = new ProposalError('deposed', `the stream to the leader ended: ${details}`);
    for (const { reject } of [...this.#questions.values(), ...this.#calls.values()]) reject(lost);
    this.#questions.clear();
    this.#calls.clear();
    // Before the proof any server may be at that address, and could claim that this server must not run.
    this.#options.onClosed(this, { code: this.#isProved ? status.code : GrpcCode.unavailable, details });
  }
}

function impostorAt(url: string): string {
  return `the server at ${url} does not know the secret of this cluster`;
}

function tooLarge(): ProposalError {
  return new ProposalError('tooLarge', 'the leader takes no request of this size');
}

function overloaded(): ProposalError {
  return new ProposalError('overloaded', 'the leader is overloaded');
}

/** The renewals of each requester together. */
function renewalsIn(requests: readonly Request[]): Renewals[] {
  const ids: bigint[] = [];
  const requested = new Map<string, { ids: bigint[]; requester: RequesterMessage }>();
  for (const { renewals = [] } of requests) {
    for (const { ids: own = [], requester } of renewals) {
      if (requester === undefined) {
        ids.push(...own);
        continue;
      }
      const key = `${requester.authRevision} ${requester.user}`;
      const known = requested.get(key);
      if (known === undefined) requested.set(key, { ids: [...own], requester });
      else known.ids.push(...own);
    }
  }
  return ids.length > 0 ? [{ ids }, ...requested.values()] : [...requested.values()];
}

function bytesOf({ proposals = [], calls = [], renewals = [] }: Request): number {
  let bytes = itemOverheadBytes;
  for (const { payload } of proposals) bytes += payload?.length ?? 0;
  for (const call of calls) bytes += bytesOfCall(call);
  for (const { requester } of renewals) bytes += requesterBytes(requester);
  return bytes;
}

function bytesOfCall({ path, request, requester }: Call): number {
  return (path?.length ?? 0) + (request?.length ?? 0) + requesterBytes(requester);
}
