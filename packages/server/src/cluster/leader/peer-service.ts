import { defaultTxnLimits } from '@tenure/core';
import { txnLimitsKind } from '../../replica/command-codec.ts';
import type { Replica } from '../../replica/replica.ts';
import type { Random } from '../../random/random.ts';
import type { Clock } from '../../time/clock.ts';
import { every } from '../../time/every.ts';
import type { Caller } from '../../api/sliced-work.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../../transport/transport.ts';
import { FollowerLink, notLeader, type FollowerLinkOptions } from './follower-link.ts';
import type { LeaderView } from '../link/leader-view.ts';
import { nameTakenText } from '../link/member-name.ts';

export interface PeerServiceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  readonly memberId: () => bigint;
  /** This server's name in its claims. */
  readonly leaderId: string;
  /** Renews a lease if this server leads and its leader lease is valid; undefined otherwise. */
  readonly renew: FollowerLinkOptions['renew'];
  /** This server's check of a command before it is proposed: see FollowerLinkOptions. */
  readonly check: FollowerLinkOptions['check'];
  /** Answers a unary call that only the leader can answer, as it would for a client. */
  readonly answer: (path: string, request: Buffer, caller: Caller) => Buffer | Promise<Buffer>;
  /** The interval of checks of the links; one second by default. */
  readonly lookIntervalMs?: number;
}

/**
 * The interval of checks of the links. Followers send something twice as often. A follower with no message between two
 * checks is late, and after `maxSilentLooks` such checks it counts as gone, whether or not the network reported an
 * error. Checks are counted, not time: a suspended leader runs one check when it resumes, and reads its sockets before
 * the next.
 */
const defaultLookIntervalMs = 1_000;
const maxSilentLooks = 3;
/**
 * Limit on streams without a valid greeting of a server; above it the oldest is rejected. A server's greeting arrives
 * with its stream, so only this many others at the same moment could push it out.
 */
const maxStrangers = 1_024;
/**
 * Limit on streams with the valid greeting of a server that have not yet proved that it was made for them; above it the
 * oldest is rejected. Without the secret a client can only replay recorded greetings, each on one stream at a time.
 */
const maxGreeted = 64;

/** The service of tenure_peer.proto, and its method. */
export const peerServiceName = 'tenure.peer.v1.Peer';
export const peerLinkPath = `/${peerServiceName}/Link`;

/** The leader's end of the streams from its followers. */
export class PeerService {
  readonly #options: PeerServiceOptions;
  readonly #links = new Set<FollowerLink>();
  /** The links without a greeting, and those with only a greeting, in order of arrival. */
  readonly #strangers = new Set<FollowerLink>();
  readonly #greetedLinks = new Set<FollowerLink>();
  /** Those that came at an address for clients. */
  readonly #atClients = new Set<FollowerLink>();
  readonly #cancel: () => void;
  /** The number of consecutive checks in which each member was without a link, in the epoch that this server leads. */
  readonly #missed = new Map<bigint, number>();
  #epoch = 0;

  constructor(options: PeerServiceOptions) {
    this.#options = options;
    const { clock, lookIntervalMs = defaultLookIntervalMs } = options;
    this.#cancel = every(clock, lookIntervalMs, () => this.look());
  }

  /** The followers that are linked. */
  get peers(): readonly { readonly memberId: bigint; readonly appliedIndex: number }[] {
    return this.#welcome();
  }

  /** Whether every member can apply commands of this kind. A member that is not linked has not reported it. */
  canAllApply(kind: number): boolean {
    const linked = this.#welcome();
    return this.#options.replica.state.members.every(({ id }) => {
      if (id === this.#options.memberId()) return true;
      return linked.some(({ memberId, newestCommand }) => memberId === id && newestCommand >= kind);
    });
  }

  /** This leader's view of the other members. Silent members are those missing in several checks. */
  get view(): LeaderView {
    const silent = [...this.#missed].filter(([, looks]) => looks >= maxSilentLooks).map(([id]) => id);
    return { index: this.#options.replica.position.index, silent };
  }

  /** `at`: whose addresses these are, at which the stream arrived. */
  handle(call: DuplexCall, at: 'clients' | 'servers'): void {
    // A server with the secret proves it in a moment, so the stream that arrived first has had the most time.
    if (this.#strangers.size >= maxStrangers) endOldest(this.#strangers);
    const { clock, random, leaderId, replica, renew, answer, check } = this.#options;
    const link = new FollowerLink(call, {
      clock,
      random,
      replica,
      leaderId,
      renew,
      answer,
      check,
      onGreeted: (greeted) => this.#greeted(greeted),
      admit: (joining) => this.#refusalOf(joining),
      onWelcome: () => {
        this.#strangers.delete(link);
        this.#greetedLinks.delete(link);
      },
      view: () => this.view,
    });
    this.#links.add(link);
    this.#strangers.add(link);
    if (at === 'clients') this.#atClients.add(link);
    call.onClose = () => {
      link.closed();
      this.#links.delete(link);
      this.#strangers.delete(link);
      this.#greetedLinks.delete(link);
      this.#atClients.delete(link);
    };
  }

  #greeted(link: FollowerLink): void {
    this.#strangers.delete(link);
    const isRepeated = [...this.#links].some((other) => other !== link && other.greeting === link.greeting);
    if (isRepeated) {
      link.end(new GrpcStatus(GrpcCode.permissionDenied, 'the greeting was made for another stream'));
      return;
    }
    if (this.#greetedLinks.size >= maxGreeted) endOldest(this.#greetedLinks);
    this.#greetedLinks.add(link);
  }

  /** This server no longer leads: linked followers look for the next leader. */
  closeAll(): void {
    for (const link of this.#links) link.end(notLeader());
  }

  /** Servers reach this one at addresses of their own from now on. */
  endAtClients(): void {
    for (const link of this.#atClients)
      link.end(new GrpcStatus(GrpcCode.unavailable, 'servers have an address of their own'));
  }

  stop(): void {
    this.#cancel();
    this.closeAll();
  }

  #welcome(): FollowerLink[] {
    return [...this.#links].filter(({ welcome }) => welcome);
  }

  /** Why a server that knows the secret may not be linked. */
  #refusalOf(joining: { readonly memberId: bigint; readonly run: string }): GrpcStatus | undefined {
    const { memberId } = joining;
    const rivals = this.#welcome().filter((link) => link.memberId === memberId && link.run !== joining.run);
    if (memberId === this.#options.memberId() || rivals.some((link) => link.runsBeside(joining.run))) {
      return new GrpcStatus(GrpcCode.alreadyExists, nameTakenText);
    }
    // It may be an earlier run that has ended, which is known after a few checks: the joining server tries again.
    if (rivals.length > 0) {
      return new GrpcStatus(GrpcCode.unavailable, 'a server of the same name was there a moment ago');
    }
    return undefined;
  }

  /** Called by the timer and by tests. */
  look(): void {
    const { replica, memberId } = this.#options;
    for (const link of this.#links) {
      link.silentLooks += 1;
      if (link.silentLooks <= maxSilentLooks) continue;
      if (link.welcome) this.#missed.set(link.memberId, maxSilentLooks);
      link.end(new GrpcStatus(GrpcCode.unavailable, 'nothing was heard of this server for too long'));
    }
    if (!replica.leading || replica.state.epoch !== this.#epoch) {
      this.#missed.clear();
      this.#epoch = replica.state.epoch;
    }
    if (!replica.leading) return;
    const linked = new Set(this.#welcome().map((link) => link.memberId)).add(memberId());
    const members = new Set(replica.state.members.map(({ id }) => id));
    for (const id of this.#missed.keys()) if (linked.has(id) || !members.has(id)) this.#missed.delete(id);
    for (const id of members) if (!linked.has(id)) this.#missed.set(id, (this.#missed.get(id) ?? 0) + 1);
    for (const link of this.#welcome()) link.tell(this.view);
    // An entry of an unknown kind stops a server: in a cluster of two versions no new kind is used.
    const { state } = replica;
    if (state.hasTxnLimits || !this.canAllApply(txnLimitsKind)) return;
    replica.proposeHere({ kind: 'setTxnLimits', limits: defaultTxnLimits }).catch(() => undefined);
  }
}

function endOldest(links: ReadonlySet<FollowerLink>): void {
  const [oldest] = links;
  const message = 'too many streams from other servers have not said who they are';
  oldest?.end(new GrpcStatus(GrpcCode.resourceExhausted, message));
}
