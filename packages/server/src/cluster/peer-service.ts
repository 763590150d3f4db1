import { defaultTxnLimits } from '@tenure/core';
import { txnLimitsKind } from '../replica/command-codec.ts';
import type { Replica } from '../replica/replica.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';
import type { Caller } from '../api/sliced-work.ts';
import { GrpcCode, GrpcStatus } from '../transport/grpc-status.ts';
import type { DuplexCall } from '../transport/transport.ts';
import { FollowerLink, notLeader, type FollowerLinkOptions, type LeaderView } from './follower-link.ts';
import { nameTakenText } from './member-name.ts';

export interface PeerServiceOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  readonly memberId: () => bigint;
  /** This server's name in the claims that it makes. */
  readonly leaderId: string;
  /** Renews a lease, if this server leads and its right holds; undefined otherwise. */
  readonly renew: (id: bigint) => number | Promise<number> | undefined;
  /** What this server asks of a command before it is proposed: see FollowerLinkOptions. */
  readonly check: FollowerLinkOptions['check'];
  /** Answers a unary call that only the leader can, as it would answer a client. */
  readonly answer: (path: string, request: Buffer, caller: Caller) => Buffer | Promise<Buffer>;
  /** How often the links are looked at; a second if it is left out. */
  readonly lookIntervalMs?: number;
}

/**
 * The links are looked at this often. Followers say something twice as often, so that one of whom nothing came between
 * two looks is late, and one of whom nothing came in `maxSilentLooks` is gone, whether or not the network said so.
 * Looks are counted, not time: a leader that itself stood still has looked once, and finds what waits in its sockets
 * before it looks again.
 */
const defaultLookIntervalMs = 1_000;
const maxSilentLooks = 3;
/** A look falls between two words of a follower that is well as often as not. */
const maxLooksOfTheLiving = 1;
/**
 * Streams that have not begun as those of a server do; with more of them the oldest is turned away. The greeting of a
 * server comes with its stream: so many others would have to come in between.
 */
const maxStrangers = 1_024;
/**
 * Streams that began with the greeting of a server and have not yet proved that it was made for them; with more of them
 * the oldest is turned away. Whoever does not know the secret can only repeat greetings that he has overheard, each of
 * them on one stream at a time.
 */
const maxGreeted = 64;

/** The method of the service of tenure_peer.proto. */
export const peerLinkPath = '/tenure.peer.v1.Peer/Link';

/** The leader's end of the streams from the other servers. */
export class PeerService {
  readonly #options: PeerServiceOptions;
  readonly #links = new Set<FollowerLink>();
  /** Of the links, in the order in which they came: those without a greeting, and those with no more than that. */
  readonly #strangers = new Set<FollowerLink>();
  readonly #greetedLinks = new Set<FollowerLink>();
  readonly #cancel: () => void;
  /** In how many looks in a row each member was without a link, in the epoch that this server leads. */
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

  /** Whether each member can apply commands of this kind; one that is not linked has not said so. */
  #canAllApply(kind: number): boolean {
    const linked = this.#welcome();
    return this.#options.replica.state.members.every(({ id }) => {
      if (id === this.#options.memberId()) return true;
      return linked.some(({ memberId, newestCommand }) => memberId === id && newestCommand >= kind);
    });
  }

  /** What this server, while it leads, knows of the others: silent are those of whom some looks found nothing. */
  get view(): LeaderView {
    const silent = [...this.#missed].filter(([, looks]) => looks >= maxSilentLooks).map(([id]) => id);
    return { index: this.#options.replica.position.index, silent };
  }

  handle(call: DuplexCall): void {
    // Whoever knows the secret has said so in a moment: the one that came first has had the longest time for it.
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
    call.onClose = () => {
      link.closed();
      this.#links.delete(link);
      this.#strangers.delete(link);
      this.#greetedLinks.delete(link);
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

  /** This server does not lead any more: who is linked looks for the next leader. */
  closeAll(): void {
    for (const link of this.#links) link.end(notLeader());
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
    const isTaken =
      memberId === this.#options.memberId() || rivals.some(({ silentLooks }) => silentLooks <= maxLooksOfTheLiving);
    if (isTaken) {
      return new GrpcStatus(GrpcCode.alreadyExists, nameTakenText);
    }
    // Perhaps an earlier run whose machine vanished: that is known in a moment.
    if (rivals.length > 0) {
      return new GrpcStatus(GrpcCode.unavailable, 'a server of the same name was there a moment ago');
    }
    return undefined;
  }

  /** The timer does so; tests may too. */
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
    // An entry of a kind that a server does not know stops it: in a cluster of two versions nothing is switched on.
    const { state } = replica;
    if (state.hasTxnLimits || !this.#canAllApply(txnLimitsKind)) return;
    replica.proposeHere({ kind: 'setTxnLimits', limits: defaultTxnLimits }).catch(() => undefined);
  }
}

function endOldest(links: ReadonlySet<FollowerLink>): void {
  const [oldest] = links;
  const message = 'too many streams from other servers have not said who they are';
  oldest?.end(new GrpcStatus(GrpcCode.resourceExhausted, message));
}
