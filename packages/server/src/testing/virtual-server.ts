import { responseHeaderPrefix } from '@tenure/codec';
import type { Command, CommandResponse } from '@tenure/core';
import { Cluster } from '../cluster/cluster.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { Leadership } from '../election/leadership.ts';
import { leaderName } from '../cluster/member-name.ts';
import { peerLinkPath } from '../cluster/peer-service.ts';
import type { VirtualNetwork } from '../cluster/testing/virtual-network.ts';
import { randomId } from '../random/random-id.ts';
import type { Random } from '../random/random.ts';
import { decodeCommand } from '../replica/command-codec.ts';
import { ensureCluster } from '../replica/ensure-cluster.ts';
import { recover, type Recovered } from '../replica/recovery.ts';
import { Replica } from '../replica/replica.ts';
import { WiredEngine } from '../replica/testing/wired-engine.ts';
import type { Clock } from '../time/clock.ts';
import { ProcessClock } from '../time/testing/process-clock.ts';
import { valueOf } from '../replica/testing/value-of.ts';

export interface VirtualServerOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly network: VirtualNetwork;
  /** Shared with the other servers. */
  readonly log: LogEngine;
}

const timing = { electionTimeoutMs: 1_000, heartbeatIntervalMs: 200, rightMs: 800, requestTimeoutMs: 7_000 };

/**
 * What a server consists of behind its door, put together as server.ts does: the real replica, leadership and cluster,
 * by a clock, a network and randomness that the test holds.
 */
export class VirtualServer {
  readonly replica: Replica;
  readonly leadership: Leadership;
  readonly cluster: Cluster;
  readonly memberId: bigint;
  readonly #options: VirtualServerOptions;
  readonly #clock: ProcessClock;
  readonly #engine: WiredEngine;
  readonly #address: string;

  static async start(options: VirtualServerOptions): Promise<VirtualServer> {
    const { random, log } = options;
    const clock = new ProcessClock(options.clock);
    await ensureCluster(log, { clock, random });
    const server = new VirtualServer(options, clock, await recover(log, decodeCommand, clock));
    await server.#start();
    return server;
  }

  private constructor(options: VirtualServerOptions, clock: ProcessClock, recovered: Recovered) {
    const { name, random, log, network } = options;
    this.#options = options;
    this.#clock = clock;
    this.#engine = new WiredEngine(log);
    this.#address = `${name}:2379`;
    this.memberId = randomId(random);
    const run = random.bytes(4).readUInt32BE();
    this.replica = this.#createReplica(recovered, run);
    this.leadership = this.#createLeadership(run);
    const { clusterId } = recovered.state;
    const { memberId } = this;
    this.cluster = new Cluster({
      clock,
      random,
      open: network.opener(this.#address),
      replica: this.replica,
      leadership: this.leadership,
      identity: { clusterId, memberId, headerPrefix: responseHeaderPrefix(clusterId, memberId) },
      run,
      leaderId: leaderName(memberId, run),
      electionTimeoutMs: timing.electionTimeoutMs,
      requestTimeoutMs: timing.requestTimeoutMs,
      engineProblem: () => undefined,
      lookNow: () => undefined,
      check: () => undefined,
      answer: () => Promise.reject(new Error('no such call is made here')),
      onLost: () => undefined,
      warn: () => undefined,
      onFailed: (error) => this.#fail(error),
    });
  }

  get leads(): boolean {
    return this.replica.leading;
  }

  value(key: string): string | undefined {
    return valueOf(this.replica.state, key);
  }

  put(key: string, value: string): Promise<CommandResponse> {
    const put = { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    return this.replica.propose({ kind: 'put', put });
  }

  propose(command: Command): Promise<CommandResponse> {
    return this.replica.propose(command);
  }

  /** As kill -9: it is woken no more, its streams break, and nothing that it has begun reaches the log. */
  kill(): void {
    this.#clock.isDead = true;
    for (const gate of [this.#engine.requests, this.#engine.replies, this.#engine.reading]) gate.hold();
    this.#options.network.cut(this.#address);
  }

  async stop(): Promise<void> {
    await this.leadership.leave(this.cluster.bestSuccessor);
    this.cluster.stopServing();
    this.cluster.stop();
    this.leadership.stop(new Error('the server is stopping'));
    await this.replica.stop();
  }

  async #start(): Promise<void> {
    const { name, network } = this.#options;
    const link = this.cluster.routes.get(peerLinkPath);
    if (link?.kind !== 'bidi') throw new Error('a cluster serves no stream of followers');
    network.listen(this.#address, (call) => link.handle(call));
    this.replica.start();
    if (this.replica.state.leader === '') void this.leadership.claimNow();
    this.cluster.look();
    await this.propose({
      kind: 'registerMember',
      id: this.memberId,
      name,
      clientUrls: [`http://${this.#address}`],
    });
  }

  #createReplica(recovered: Recovered, run: number): Replica {
    return new Replica(recovered, {
      engine: this.#engine,
      metrics: { appended: () => {}, applied: () => {}, snapshotSaved: () => {} },
      snapshots: { entries: 1_000_000, bytes: Number.MAX_SAFE_INTEGER },
      run,
      requestTimeoutMs: timing.requestTimeoutMs,
      clock: this.#clock,
      stampMs: () => this.leadership.stampMs(),
      mayAppend: () => this.leadership.mayAppend(),
      mayReadByLease: () => false,
      problem: () => this.cluster.reach.problem,
      onAppended: () => this.leadership.appended(),
      onApplied: (entry, applied) => {
        this.leadership.applied(entry, applied);
        this.cluster.applied(entry);
      },
      onLoaded: () => this.leadership.loaded(),
      slowestFollower: () => this.cluster.slowestFollower,
      onSnapshotPutOff: (error) => this.#fail(error),
      onDeposed: () => {
        this.leadership.deposed();
        this.cluster.deposed();
      },
      onAppendFailed: () => undefined,
      onFailed: (error) => this.#fail(error),
    });
  }

  #createLeadership(run: number): Leadership {
    return new Leadership({
      clock: this.#clock,
      random: this.#options.random,
      port: () => this.replica,
      metrics: { leaseRenewed: () => {}, leaseExpired: () => {} },
      memberId: this.memberId,
      leaderId: leaderName(this.memberId, run),
      heartbeatIntervalMs: timing.heartbeatIntervalMs,
      electionTimeoutMs: timing.electionTimeoutMs,
      rightMs: timing.rightMs,
      onChange: (leads) => {
        if (leads) this.cluster.desk.leads();
      },
      onFailed: (error) => this.#fail(error),
    });
  }

  #fail(error: Error): void {
    if (!this.#clock.isDead) throw error;
  }
}
