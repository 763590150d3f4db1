import type { Command, StateMachine } from '@tenure/core';
import { logStart } from '../../engines/chain-hash.ts';
import type { LogEngine, Position } from '../../engines/log-engine.ts';
import { memoryEngine } from '../../engines/memory/memory-engine.ts';
import { decodeCommand, encodeCommand } from '../command-codec.ts';
import { decodeEntry, encodeEntry } from '../entry-codec.ts';
import { ensureCluster } from '../ensure-cluster.ts';
import { recover } from '../recovery.ts';
import type { ReplicaOptions } from '../replica-options.ts';
import { Replica } from '../replica.ts';
import { grantingAuthority } from './granting-authority.ts';
import { WiredEngine } from './wired-engine.ts';
import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';

/** The replica of one server, its access to the log, and the facts that it reported. */
export interface WiredReplica {
  readonly replica: Replica;
  readonly engine: WiredEngine;
  readonly loaded: Position[];
}

type JoinOptions = Partial<ReplicaOptions>;

/** The replicas of two servers on one log, without the rest of the servers. */
export class ReplicaPair {
  readonly log: LogEngine = memoryEngine({ isShared: true });
  readonly #open: Replica[] = [];
  #runs = 0;

  /** Begins the log as a version before the limits of transactions did. */
  async beginWithoutLimits(): Promise<void> {
    const created = encodeCommand({ kind: 'createCluster', clusterId: 7n, secret: 'of an earlier version' });
    await this.log.append([encodeEntry({ epoch: 0, timeMs: 0 }, [created])], logStart);
  }

  async join(options: JoinOptions | ((state: StateMachine) => JoinOptions) = {}): Promise<WiredReplica> {
    await ensureCluster(this.log, { clock: systemClock, random: systemRandom });
    const engine = new WiredEngine(this.log);
    const loaded: Position[] = [];
    this.#runs += 1;
    const recovered = await recover(engine, decodeCommand, systemClock);
    const { onFact, ...changed } = typeof options === 'function' ? options(recovered.state) : options;
    const replica = new Replica(recovered, {
      engine,
      metrics: { appended: () => {}, applied: () => {}, snapshotSaved: () => {} },
      snapshots: { entries: 1_000_000, bytes: Number.MAX_SAFE_INTEGER },
      run: this.#runs,
      requestTimeoutMs: 20_000,
      clock: systemClock,
      authority: grantingAuthority,
      readsByLease: false,
      problem: () => undefined,
      slowestFollower: () => Infinity,
      ...changed,
      onFact: (fact) => {
        if (fact.kind === 'loaded') loaded.push(fact.position);
        onFact?.(fact);
        if (fact.kind === 'failed') throw fact.error;
      },
    });
    replica.start();
    this.#open.push(replica);
    return { replica, engine, loaded };
  }

  /** Makes this replica the leader, and links the other one to it. */
  async lead(leader: WiredReplica, follower: WiredReplica): Promise<void> {
    const { replica } = leader;
    const outcome = await replica.claim({ leader: `run-${replica.state.epoch + 1}`, leaderLeaseMs: 800 });
    if (outcome !== 'leads') throw new Error(`the outcome of the claim was ${outcome}`);
    await follower.replica.whenApplied(replica.position.index);
    this.link(follower, leader);
  }

  /** Links a follower to the leader of the current epoch. */
  link({ replica: follower }: WiredReplica, { replica }: WiredReplica): void {
    const { epoch } = replica.state;
    follower.linked({
      epoch,
      propose: ({ command, encoded }) => {
        replica.proposeFor(command, encoded).catch(() => follower.returned(encoded.origin.sequence, epoch));
      },
      readIndex: () => replica.confirm().then(() => replica.position.index),
    });
  }

  /** The kinds of all commands in the log. */
  async logged(): Promise<Command['kind'][]> {
    const { index } = await this.log.tail();
    const stop = new AbortController();
    const kinds: Command['kind'][] = [];
    for await (const entries of this.log.follow(logStart, stop.signal)) {
      for (const { bytes } of entries) kinds.push(...decodeEntry(bytes).commands.map((one) => decodeCommand(one).kind));
      if (entries.at(-1)?.position.index === index) break;
    }
    return kinds;
  }

  async close(): Promise<void> {
    for (const replica of this.#open) await replica.stop();
    await this.log.close();
  }
}
