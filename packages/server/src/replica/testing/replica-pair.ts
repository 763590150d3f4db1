import type { Command } from '@tenure/core';
import { logStart } from '../../engines/chain-hash.ts';
import type { LogEngine, Position } from '../../engines/log-engine.ts';
import { memoryEngine } from '../../engines/memory/memory-engine.ts';
import { decodeCommand, encodeCommand } from '../command-codec.ts';
import { decodeEntry, encodeEntry } from '../entry-codec.ts';
import { ensureCluster } from '../ensure-cluster.ts';
import { recover } from '../recovery.ts';
import type { ReplicaOptions } from '../replica-options.ts';
import { Replica } from '../replica.ts';
import { WiredEngine } from './wired-engine.ts';
import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';

/** One server's replica, its way to the log, and what it was told. */
export interface WiredReplica {
  readonly replica: Replica;
  readonly engine: WiredEngine;
  readonly loaded: Position[];
}

/** The replicas of two servers, without anything else of these, on one log. */
export class ReplicaPair {
  readonly log: LogEngine = memoryEngine({ isShared: true });
  readonly #open: Replica[] = [];
  #runs = 0;

  /** Begins the log as a version did that knew no limits of transactions. */
  async beginWithoutLimits(): Promise<void> {
    const created = encodeCommand({ kind: 'createCluster', clusterId: 7n, secret: 'of an earlier version' });
    await this.log.append([encodeEntry({ epoch: 0, timeMs: 0 }, [created])], logStart);
  }

  async join(options: Partial<ReplicaOptions> = {}): Promise<WiredReplica> {
    await ensureCluster(this.log, { clock: systemClock, random: systemRandom });
    const engine = new WiredEngine(this.log);
    const loaded: Position[] = [];
    this.#runs += 1;
    const replica = new Replica(await recover(engine, decodeCommand, systemClock), {
      engine,
      metrics: { appended: () => {}, applied: () => {}, snapshotSaved: () => {} },
      snapshots: { entries: 1_000_000, bytes: Number.MAX_SAFE_INTEGER },
      run: this.#runs,
      requestTimeoutMs: 20_000,
      clock: systemClock,
      stampMs: () => 0,
      mayAppend: () => true,
      mayReadByLease: () => false,
      problem: () => undefined,
      onAppended: () => {},
      onApplied: () => {},
      onLoaded: (position) => loaded.push(position),
      slowestFollower: () => Infinity,
      onSnapshotPutOff: () => {},
      onDeposed: () => {},
      onAppendFailed: () => {},
      onFailed: (error) => {
        throw error;
      },
      ...options,
    });
    replica.start();
    this.#open.push(replica);
    return { replica, engine, loaded };
  }

  /** Makes this one the leader, and the way from the other one to it. */
  async lead(leader: WiredReplica, follower: WiredReplica): Promise<void> {
    const { replica } = leader;
    const outcome = await replica.claim({ leader: `run-${replica.state.epoch + 1}`, rightMs: 800 });
    if (outcome !== 'leads') throw new Error(`the claim came out as ${outcome}`);
    await follower.replica.whenApplied(replica.position.index);
    this.link(follower, leader);
  }

  /** Opens the way from a follower to the leader of the epoch that is. */
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

  /** The kinds of all commands that the log holds. */
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
