import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { Leadership } from '../packages/server/src/election/leadership.ts';
import { ForwardingDesk } from '../packages/server/src/cluster/forwarding-desk.ts';
import type { PendingProposal } from '../packages/server/src/replica/pending-proposals.ts';
import type { Applied, Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import { rightMs } from './expiry-bound.ts';
import type { SharedLog } from './shared-log.ts';
import { SimulatedReplica } from './simulated-replica.ts';

export interface SimulatedServerOptions {
  readonly run: number;
  readonly memberId: bigint;
  readonly clock: NodeClock;
  readonly log: SharedLog;
  readonly random: SeededRandom;
  /** The process of that leader, while it runs. */
  readonly serverOf: (leaderId: string) => SimulatedServer | undefined;
  /** A leader has said yes to a renewal that its keeper was asked at `askedMs` (true time). */
  readonly acknowledged: (id: bigint, askedMs: number, epoch: number) => void;
  readonly applied: (state: StateMachine) => void;
  readonly trueMs: () => number;
  readonly failed: (error: Error) => void;
  /** What a follower has applied counts for nothing when its renewals are answered: a mutation. */
  readonly followerIndexIgnored: boolean;
  readonly appendOutIgnored: boolean;
}

/** A stream from a follower to the leader of one epoch: in order, until it breaks. */
interface Link {
  readonly leader: SimulatedServer;
  readonly epoch: number;
  open: boolean;
  toLeaderAtMs: number;
}

const lookIntervalMs = 100;

/** One run of one server: the real leadership, keeper and desk over a simulated replica and simulated streams. */
export class SimulatedServer {
  readonly clock: NodeClock;
  readonly replica: SimulatedReplica;
  readonly leadership: Leadership;
  readonly leaderId: string;
  readonly #options: SimulatedServerOptions;
  readonly #desk: ForwardingDesk;
  readonly #followers = new Set<Link>();
  #link: Link | undefined;

  constructor(options: SimulatedServerOptions) {
    const { clock, run, log, random, memberId } = options;
    this.#options = options;
    this.clock = clock;
    this.leaderId = `run-${run}`;
    this.replica = new SimulatedReplica({
      run,
      clock,
      log,
      random,
      stampMs: () => this.leadership.stampMs(),
      mayAppend: () => this.leadership.mayAppend(),
      onAppended: () => this.leadership.appended(),
      onApplied: (entry, applied) => this.#onApplied(entry, applied),
      onDeposed: () => this.#onDeposed(),
      appendOutIgnored: options.appendOutIgnored,
      forward: (proposal) => this.#forward(proposal),
    });
    this.leadership = new Leadership({
      clock,
      port: () => this.replica,
      metrics: { leaseExpired: () => {}, leaseRenewed: () => {} },
      memberId,
      leaderId: this.leaderId,
      heartbeatIntervalMs: 200,
      electionTimeoutMs: 1_000,
      rightMs,
      random: { fraction: () => random.next(), bytes: (count) => Buffer.alloc(count) },
      onChange: (leads) => {
        if (leads) this.#desk.leads();
      },
      onFailed: options.failed,
    });
    this.#desk = new ForwardingDesk({
      renewHere: (id) => this.#renewHere(id),
      revision: () => this.replica.state.currentRevision,
    });
  }

  start(): void {
    this.replica.start();
    if (this.replica.state.epoch === 0) void this.leadership.claimNow();
    this.#look();
  }

  /** A crash: nothing is said to anybody but by the ends of the streams. */
  crash(): void {
    this.clock.dead = true;
    this.#closeFollowers();
  }

  propose(command: Command): Promise<CommandResponse> {
    return this.replica.propose(command);
  }

  renew(id: bigint): number | Promise<number> {
    return this.#desk.renew(id);
  }

  /** An operator asks this server to hand the lead to a member; nothing happens unless it leads. */
  moveLeader(target: bigint): void {
    this.clock.deliver(1, () => {
      if (this.replica.leading && target !== this.#options.memberId) {
        this.leadership.resign(target).catch(() => undefined);
      }
    });
  }

  /** The stream to the leader breaks. */
  cutLink(): void {
    const link = this.#link;
    if (link !== undefined) this.clock.deliver(1, () => this.#unlink(link));
  }

  /** The keeper's answer, seen by the checker at the moment when it is given. */
  #renewHere(id: bigint): number | Promise<number> | undefined {
    const { acknowledged, trueMs } = this.#options;
    const askedMs = trueMs();
    const { epoch } = this.replica.state;
    const answered = (ttlMs: number): number => {
      if (ttlMs > 0) acknowledged(id, askedMs, epoch);
      return ttlMs;
    };
    const outcome = this.leadership.renew(id);
    if (outcome === undefined) return undefined;
    return typeof outcome === 'number' ? answered(outcome) : outcome.then(answered);
  }

  #onApplied(entry: Entry, applied: Applied): void {
    this.leadership.applied(entry, applied);
    this.#options.applied(this.replica.state);
    const link = this.#link;
    if (link !== undefined && link.epoch !== this.replica.state.epoch) this.#unlink(link);
  }

  #onDeposed(): void {
    this.#closeFollowers();
    this.leadership.deposed();
  }

  #closeFollowers(): void {
    for (const link of this.#followers) link.open = false;
    this.#followers.clear();
  }

  /** Keeps this server linked to whoever leads as the log says. */
  #look(): void {
    const { serverOf, random } = this.#options;
    const { leader, epoch } = this.replica.state;
    if (this.#link?.open === false) this.#unlink(this.#link);
    if (this.#link === undefined && leader !== '' && leader !== this.leaderId) {
      const server = serverOf(leader);
      server?.clock.deliver(random.between(0.2, 3), () => {
        if (!server.#leads(epoch)) return;
        const link: Link = { leader: server, epoch, open: true, toLeaderAtMs: 0 };
        server.#followers.add(link);
        this.clock.deliver(random.between(0.2, 3), () => this.#linked(link));
      });
    }
    this.clock.after(lookIntervalMs, () => this.#look());
  }

  #linked(link: Link): void {
    if (!link.open || this.#link !== undefined || this.replica.state.epoch !== link.epoch) return;
    this.#link = link;
    this.#desk.linked({ renew: (id) => this.#forwardRenewal(link, id) });
    this.replica.linked();
  }

  #unlink(link: Link): void {
    link.open = false;
    if (this.#link !== link) return;
    this.#link = undefined;
    this.#desk.linked(undefined);
  }

  #leads(epoch: number): boolean {
    return this.replica.leading && this.replica.state.epoch === epoch;
  }

  /** In order; lost when the stream has broken. */
  #toLeader(link: Link, receive: () => void): void {
    const { trueMs } = this.#options;
    link.toLeaderAtMs = Math.max(link.toLeaderAtMs, trueMs() + this.#delayMs());
    link.leader.clock.deliver(link.toLeaderAtMs - trueMs(), () => {
      if (link.open) receive();
    });
  }

  #forward({ command, encoded: { origin } }: PendingProposal): boolean {
    const link = this.#link;
    if (link === undefined || link.epoch !== this.replica.state.epoch) return false;
    this.#toLeader(link, () => {
      const { leader, epoch } = link;
      if (leader.#leads(epoch) && leader.replica.proposeFor({ command, origin })) return;
      this.clock.deliver(1, () => this.replica.returned(origin.sequence, epoch));
    });
    return true;
  }

  /** As the peer service does it: what the follower has applied is applied at the leader before it answers. */
  #forwardRenewal(link: Link, id: bigint): void {
    const { followerIndexIgnored } = this.#options;
    const index = followerIndexIgnored ? 0 : this.replica.state.appliedIndex;
    this.#toLeader(link, () => {
      const { leader, epoch } = link;
      const refuse = (): void => {
        link.open = false;
      };
      void leader.replica.whenApplied(index).then(async () => {
        try {
          const ttlMs = leader.#leads(epoch) ? await leader.#renewHere(id) : undefined;
          if (ttlMs === undefined) {
            refuse();
            return;
          }
          this.clock.deliver(this.#delayMs(), () => {
            if (link.open) this.#desk.renewed(id, ttlMs, 0);
          });
        } catch {
          refuse();
        }
      });
    });
  }

  #delayMs(): number {
    const { random, log } = this.#options;
    return log.rough && random.chance(0.03) ? random.between(3, 300) : random.between(0.2, 3);
  }
}
