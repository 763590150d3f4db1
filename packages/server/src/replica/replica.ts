import type { Applied, Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import { EngineError } from '../engines/engine-error.ts';
import type { LoggedEntry, Position } from '../engines/log-engine.ts';
import { every } from '../time/every.ts';
import { Applier } from './applier.ts';
import { encodeCommand } from './command-codec.ts';
import { encodeEntry, type EncodedCommand, type EntryHeaders } from './entry-codec.ts';
import { FollowLoop } from './follow-loop.ts';
import { LeaseReads } from './lease-reads.ts';
import type { LeaderLink } from './leader-link.ts';
import { loadSnapshot } from './load-snapshot.ts';
import { PendingProposals, type PendingProposal } from './pending-proposals.ts';
import { ProposalError } from './proposal-error.ts';
import { ReadQueue } from './read-queue.ts';
import type { Recovered } from './recovery.ts';
import { Scrubber } from './scrubber.ts';
import { Sequencer } from './sequencer.ts';
import type { ReplicaOptions } from './replica-options.ts';
import { Snapshotter } from './snapshotter.ts';

/** How a claim came out. `unclear`: the engine could not tell, and the log will. */
export type ClaimOutcome = 'leads' | 'lost' | 'unclear';

/** How often what waits is looked at for its deadline. */
const expiryIntervalMs = 250;
const defaultStopGraceMs = 2_000;

/**
 * The replicated state on a server. On a shared log it follows what others append; while it leads it appends itself.
 * Proposals made here go to whoever leads, at most once each, and their outcome is read from the log. On a log of its
 * own it has nothing to follow and nobody to ask: a proposal waits for its append alone.
 */
export class Replica {
  readonly state: StateMachine;
  readonly #options: ReplicaOptions;
  readonly #applier: Applier;
  readonly #follow: FollowLoop;
  readonly #pending: PendingProposals;
  readonly #reads: ReadQueue;
  readonly #scrubber: Scrubber;
  readonly #snapshotter: Snapshotter;
  /** Runs where something waits for other servers. */
  #cancelExpiry: () => void = () => {};
  #sequencer: Sequencer | undefined;
  #link: LeaderLink | undefined;
  #lastAppendBeganMs = 0;
  #lastAppend: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  readonly #leaseReads = new LeaseReads(() => this.#linearizeByLog());

  constructor({ state, position, replayed }: Recovered, options: ReplicaOptions) {
    this.#options = options;
    this.state = state;
    this.#pending = new PendingProposals(options.run, options.requestTimeoutMs);
    this.#reads = new ReadQueue(options.requestTimeoutMs, () => this.#catchUp());
    this.#scrubber = new Scrubber(state, options.clock);
    this.#applier = new Applier({
      state,
      position,
      onApplied: (entry, applied, beganMs) => this.#onApplied(entry, applied, beganMs),
      isAwaited: (origin) => this.#pending.isAwaited(origin),
      onOutcome: (origin, response) => this.#pending.applied(origin, response),
      clock: options.clock,
      measured: (durationMs) => options.metrics.applied(durationMs),
    });
    this.#follow = new FollowLoop(options.engine, this.#applier, {
      clock: options.clock,
      applied: (bytes) => this.#snapshotter.followed(bytes),
      trimmed: () => this.#loadSnapshot(),
      failed: (error) => {
        if (!this.#stopping.signal.aborted) options.onFailed(error);
      },
    });
    this.#snapshotter = new Snapshotter({
      engine: options.engine,
      state,
      thresholds: options.snapshots,
      position: () => this.position,
      slowestFollower: options.slowestFollower,
      saved: (durationMs) => options.metrics.snapshotSaved(durationMs),
      putOff: options.onSnapshotPutOff,
      failed: options.onFailed,
      clock: options.clock,
      entriesSinceSnapshot: replayed,
    });
  }

  /** Begins to follow what others append. */
  start(): void {
    this.#scrubber.wake();
    this.#followOthers();
    if (this.isShared) this.#cancelExpiry = every(this.#options.clock, expiryIntervalMs, () => this.#expire());
  }

  /** Whether other servers may append to the log. */
  get isShared(): boolean {
    return this.#options.engine.isShared;
  }

  get position(): Position {
    return this.#applier.position;
  }

  get leading(): boolean {
    return this.#sequencer !== undefined;
  }

  /** The last entry that was appended in this server's epoch; undefined while it does not lead. */
  get lastAppended(): LoggedEntry | undefined {
    return this.#sequencer?.lastAppended;
  }

  get lastAppendBeganMs(): number {
    return this.#sequencer?.lastAppendBeganMs ?? this.#lastAppendBeganMs;
  }

  whenApplied(index: number): Promise<void> {
    return this.#applier.whenApplied(index);
  }

  /** Resolves with the outcome, by then durable and applied here. Rejects with ProposalError. */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse> {
    if (this.#stopping.signal.aborted) return Promise.reject(new ProposalError('stopped', 'the server is stopping'));
    if (!this.isShared) return this.#sequencer?.propose(command, raw) ?? Promise.reject(notLeading());
    try {
      const { proposal, outcome } = this.#pending.add(command, raw, this.#options.clock.monotonicMs());
      this.#hand(proposal);
      return outcome;
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /**
   * For what the leader of this epoch wants of its own accord: appended by this server in this epoch or by nobody.
   * Rejects with ProposalError when that is over, also where the outcome is not known.
   */
  proposeHere(command: Command): Promise<CommandResponse> {
    return this.#sequencer?.propose(command) ?? Promise.reject(notLeading());
  }

  /**
   * Resolves when the state here is no older than this call; undefined if it is that now: always on a log of its own,
   * and else only where a leader may read by its lease.
   */
  linearize(): Promise<void> | undefined {
    if (!this.isShared) return undefined;
    const sequencer = this.#sequencer;
    if (sequencer === undefined || !this.#options.mayReadByLease()) return this.#linearizeByLog();
    const out = sequencer.appendOut();
    return out === undefined ? undefined : this.#leaseReads.behind(out);
  }

  /** As `linearize`, for a follower that asks this server as its leader. Rejects while this server does not lead. */
  async confirm(): Promise<void> {
    await (this.leading && this.#options.mayReadByLease() ? this.linearize() : this.barrier());
  }

  /** Resolves when the log has answered what is out now: then it is known to answer. See Sequencer.appendReturned. */
  logAnswers(): Promise<void> {
    return this.linearize() ?? this.#sequencer?.appendReturned() ?? Promise.reject(notLeading());
  }

  /** See Sequencer.leaseSettled. Undefined where this server does not lead, or no other may have read the append. */
  leaseSettled(id: bigint): Promise<void> | undefined {
    return this.isShared ? this.#sequencer?.leaseSettled(id) : undefined;
  }

  /** See Sequencer.revisionSettled. Undefined where this server does not lead, or no other may have read the append. */
  revisionSettled(): Promise<void> | undefined {
    return this.isShared ? this.#sequencer?.revisionSettled() : undefined;
  }

  /** A command of another server, to be appended if this one leads. Rejects if it was not appended and will not be. */
  proposeFor(command: Command, encoded: EncodedCommand): Promise<CommandResponse> {
    return this.#sequencer?.proposeEncoded(command, encoded) ?? Promise.reject(notLeading());
  }

  /**
   * An append that begins after this call comes back: then nobody else led at that time. Rejects while this server
   * does not lead.
   */
  barrier(): Promise<void> {
    return this.#sequencer?.barrier() ?? Promise.reject(notLeading());
  }

  /** The way to the leader has opened, or closed (undefined). What waits is handed over. */
  linked(link: LeaderLink | undefined): void {
    this.#link = link;
    this.#handAll();
  }

  /** The leader of `epoch` has not appended this proposal and will not. */
  returned(sequence: number, epoch: number): void {
    this.#pending.returned(sequence, epoch);
    this.#handAll();
  }

  refused(sequence: number, error: Error): void {
    this.#pending.refuse(sequence, error);
  }

  /**
   * Appends a claim directly behind what has been applied here at the call, and leads if nothing came in between. Must
   * not be called while this server leads.
   */
  async claim(claim: { readonly leader: string; readonly rightMs: number }): Promise<ClaimOutcome> {
    const { index } = this.position;
    // The engine takes one append at a time, and the last one of an epoch that was given up may still be out, for as
    // long as a broken connection is waited for: what others append is followed meanwhile.
    await this.#lastAppend;
    await this.#follow.stop();
    if (this.#stopping.signal.aborted) return 'unclear';
    // What was applied meanwhile, or came in a snapshot, may be the claim of another, whose right must be waited out.
    if (this.position.index !== index) {
      this.#followOthers();
      return 'lost';
    }
    const { engine, clock, onAppended, onAppendFailed } = this.#options;
    const epoch = this.state.epoch + 1;
    const command: Command = { kind: 'claim', epoch, ...claim };
    const headers: EntryHeaders = { epoch, timeMs: this.state.clusterTimeMs };
    const encoded = [encodeCommand(command)];
    const beganMs = clock.monotonicMs();
    this.#lastAppendBeganMs = beganMs;
    try {
      const position = await engine.append([encodeEntry(headers, encoded)], this.position);
      // Nobody would end the lead of a server that has stopped; its claim lapses like that of one that was killed.
      if (this.#stopping.signal.aborted) return 'unclear';
      this.#sequencer = this.#newSequencer(position);
      this.#applier.apply(position, headers, encoded, [command]);
      onAppended(beganMs);
      this.#handAll();
      return 'leads';
    } catch (error) {
      this.#sequencer = undefined;
      this.#followOthers();
      if (!this.isShared || !(error instanceof EngineError)) throw error;
      if (error.code === 'conflict') return 'lost';
      onAppendFailed(error);
      if (error.code === 'unknown' || error.code === 'unavailable') return 'unclear';
      throw error;
    }
  }

  /** Begins no further append in this epoch, and follows again. */
  stepDown(): void {
    this.#sequencer?.retire();
    this.#deposed();
  }

  async stop(): Promise<void> {
    this.#cancelExpiry();
    const stopping = new ProposalError('stopped', 'the server is stopping');
    this.#stopping.abort(stopping);
    await this.#stopAppending();
    await this.#follow.stop();
    this.#pending.failAll(stopping);
    this.#reads.failAll(stopping);
    this.#applier.stop(stopping);
    this.#scrubber.stop();
    await this.#snapshotter.stop();
  }

  async #stopAppending(): Promise<void> {
    const sequencer = this.#sequencer;
    if (sequencer === undefined) return;
    const giveUp = (): void => sequencer.retire();
    const { clock, stopGraceMs = defaultStopGraceMs } = this.#options;
    const cancel = this.isShared ? clock.after(stopGraceMs, giveUp) : undefined;
    await sequencer.stop();
    cancel?.();
  }

  #newSequencer(position: Position): Sequencer {
    const { engine, clock, stampMs, mayAppend, metrics, onAppended } = this.#options;
    return new Sequencer({
      engine,
      position,
      headers: () => ({ epoch: this.state.epoch, timeMs: stampMs() }),
      rowsOf: (command, atMost) => this.state.countRows(command, atMost),
      apply: (at, headers, encoded, commands) => this.#applier.apply(at, headers, encoded, commands),
      mayAppend,
      appended: (commands, bytes, beganMs) => {
        metrics.appended({ entries: 1, commands, bytes, durationMs: clock.monotonicMs() - beganMs });
        onAppended(beganMs);
        this.#snapshotter.appended(bytes);
      },
      failed: (error) => this.#sequencerFailed(error),
      clock,
    });
  }

  #sequencerFailed(error: Error): void {
    const passing = error instanceof ProposalError || (error instanceof EngineError && error.isPassing);
    this.#options.onAppendFailed(error);
    if (passing && this.isShared) this.#deposed();
    else this.#options.onFailed(error);
  }

  #deposed(): void {
    if (this.#sequencer === undefined) return;
    this.#lastAppendBeganMs = this.#sequencer.lastAppendBeganMs;
    this.#lastAppend = this.#sequencer.appendSettled();
    this.#sequencer = undefined;
    this.#followOthers();
    this.#leaseReads.deposed();
    this.#options.onDeposed();
  }

  #followOthers(): void {
    if (this.isShared && !this.#stopping.signal.aborted) this.#follow.start();
  }

  #onApplied(entry: Entry, applied: Applied, beganMs: number): void {
    const first = entry.commands[0];
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#pending.claimed(first.epoch);
    this.#options.onApplied(entry, applied, beganMs);
    if (entry.commands.some(({ kind }) => kind === 'compact')) this.#scrubber.wake();
  }

  /**
   * Begun by the follow loop, where the log does not reach back to what was applied here. A claim waits until it has
   * come to its end, and is lost: if it broke it off, a load that is longer than the election timeout would never end.
   */
  async #loadSnapshot(): Promise<void> {
    const loaded = await loadSnapshot(this.#options.engine, this.#options.clock, this.#stopping.signal);
    const { index } = this.position;
    if (loaded === undefined) {
      throw new EngineError('damaged', `the log begins behind entry ${index}, and there is no snapshot in its place`);
    }
    const { clusterId } = loaded.state;
    if (clusterId !== this.state.clusterId) {
      const what = `this log is that of another cluster now (${clusterId.toString(16)}), restored from a snapshot`;
      throw new EngineError('diverged', `${what}; servers of the former one must not go on with it`);
    }
    this.state.replaceWith(loaded.state);
    this.#pending.skipped();
    this.#snapshotter.loaded();
    this.#scrubber.wake();
    this.#applier.skipTo(loaded.position);
    this.#options.onLoaded(loaded.position);
    this.#handAll();
  }

  #hand(proposal: PendingProposal): void {
    if (proposal.epoch !== undefined) return;
    const { sequence } = proposal.encoded.origin;
    const { epoch } = this.state;
    if (this.#sequencer !== undefined) {
      proposal.epoch = epoch;
      this.#sequencer.proposeEncoded(proposal.command, proposal.encoded).catch((error: unknown) => {
        if (error instanceof ProposalError && error.code === 'deposed') this.#pending.returned(sequence, epoch);
        else if (error instanceof ProposalError) this.#pending.refuse(sequence, error);
      });
    } else if (this.#link !== undefined && this.#link.epoch === epoch) {
      proposal.epoch = epoch;
      this.#link.propose(proposal);
    }
  }

  #handAll(): void {
    for (const proposal of this.#pending.waiting()) this.#hand(proposal);
    this.#reads.pump();
  }

  #linearizeByLog(): Promise<void> {
    return this.#reads.read(this.#options.clock.monotonicMs());
  }

  #catchUp(): Promise<void> | undefined {
    if (this.#sequencer !== undefined) return this.#sequencer.barrier();
    const link = this.#link;
    return link?.readIndex().then((index) => this.#applier.whenApplied(index));
  }

  #expire(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const problem = this.#options.problem();
    this.#pending.expire(nowMs, problem);
    this.#reads.expire(nowMs, problem);
    // A question whose answer was lost is asked anew, and what came back is handed over.
    this.#handAll();
  }
}

function notLeading(): ProposalError {
  return new ProposalError('deposed', 'this server does not lead');
}
