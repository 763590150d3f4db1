import type { Applied, Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import { EngineError } from '../engines/engine-error.ts';
import type { LoggedEntry, Position } from '../engines/log-engine.ts';
import { every } from '../time/every.ts';
import { Applier } from './applier.ts';
import { encodeCommand } from './command-codec.ts';
import { encodeEntry, type EncodedCommand, type EntryHeaders } from './entry-codec.ts';
import { FollowLoop } from './follow-loop.ts';
import { LeaderLeaseReads } from './leader-lease-reads.ts';
import type { LeaderLink } from './leader-link.ts';
import { loadSnapshot } from './load-snapshot.ts';
import { PendingProposals, type PendingProposal } from './pending-proposals.ts';
import { ProposalError } from './proposal-error.ts';
import { ReadQueue } from './read-queue.ts';
import type { Recovered } from './recovery.ts';
import { HistoryCollector } from './history-collector.ts';
import { Sequencer } from './sequencer.ts';
import type { ClaimOutcome } from './replica-fact.ts';
import type { ReplicaOptions } from './replica-options.ts';
import { Snapshotter } from './snapshotter.ts';

/** How often waiting proposals and reads are checked for their timeout. */
const expiryIntervalMs = 250;
const defaultStopGraceMs = 2_000;

/**
 * The replicated state on a server. On a shared log a follower applies the entries of the leader, and the leader
 * appends. Proposals made here go to the current leader, at most once each, and their outcome is read from the log. On
 * an unshared log there is no other server: a proposal waits for its own append only.
 */
export class Replica {
  readonly state: StateMachine;
  readonly #options: ReplicaOptions;
  readonly #applier: Applier;
  readonly #follow: FollowLoop;
  readonly #pending: PendingProposals;
  readonly #reads: ReadQueue;
  readonly #collector: HistoryCollector;
  readonly #snapshotter: Snapshotter;
  /** Runs on a shared log, where proposals and reads wait for other servers. */
  #cancelExpiry: () => void = () => {};
  #sequencer: Sequencer | undefined;
  #link: LeaderLink | undefined;
  #lastAppend: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  readonly #leaderLeaseReads = new LeaderLeaseReads(() => this.#linearizeByLog());

  constructor({ state, position, replayed }: Recovered, options: ReplicaOptions) {
    this.#options = options;
    this.state = state;
    this.#pending = new PendingProposals(options.run, options.requestTimeoutMs, options.maxPendingCommands);
    this.#reads = new ReadQueue(options.requestTimeoutMs, () => this.#catchUp());
    this.#collector = new HistoryCollector(state, options.clock);
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
        if (!this.#stopping.signal.aborted) options.onFact({ kind: 'failed', error });
      },
    });
    this.#snapshotter = new Snapshotter({
      engine: options.engine,
      state,
      thresholds: options.snapshots,
      position: () => this.position,
      slowestFollower: options.slowestFollower,
      saved: (durationMs) => options.metrics.snapshotSaved(durationMs),
      putOff: (reason) => options.onFact({ kind: 'snapshotPutOff', reason }),
      failed: (error) => options.onFact({ kind: 'failed', error }),
      clock: options.clock,
      entriesSinceSnapshot: replayed,
    });
  }

  /** Starts to follow the log. */
  start(): void {
    this.#collector.wake();
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

  /** The last entry appended in this server's epoch; undefined while it does not lead. */
  get lastAppended(): LoggedEntry | undefined {
    return this.#sequencer?.lastAppended;
  }

  whenApplied(index: number): Promise<void> {
    return this.#applier.whenApplied(index);
  }

  /** Resolves with the outcome, which is durable and applied here. Rejects with ProposalError. */
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
   * For commands that the leader of this epoch proposes by itself: this server appends them in this epoch, or no server
   * does. Rejects with ProposalError when the epoch is over, also if the outcome is unknown.
   */
  proposeHere(command: Command): Promise<CommandResponse> {
    return this.#sequencer?.propose(command) ?? Promise.reject(notLeading());
  }

  /**
   * Resolves when the local state is no older than this call. Undefined if it already is: always on an unshared log,
   * and else only where a leader may read by its leader lease.
   */
  linearize(): Promise<void> | undefined {
    if (!this.isShared) return undefined;
    const sequencer = this.#sequencer;
    if (sequencer === undefined || !this.#mayReadByLease()) return this.#linearizeByLog();
    const out = sequencer.appendOut();
    return out === undefined ? undefined : this.#leaderLeaseReads.behind(out);
  }

  /** As `linearize`, for a follower that asks this server as its leader. Rejects while this server does not lead. */
  async confirm(): Promise<void> {
    await (this.leading && this.#mayReadByLease() ? this.linearize() : this.barrier());
  }

  /**
   * Resolves when the append in flight has returned, which shows that the log answers. See Sequencer.appendReturned.
   */
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

  /** See Sequencer.authSettled. Undefined where this server does not lead, or no other may have read the append. */
  authSettled(): Promise<void> | undefined {
    return this.isShared ? this.#sequencer?.authSettled() : undefined;
  }

  /** Appends a command of another server if this one leads. Rejects if it was not appended and will not be. */
  proposeFor(command: Command, encoded: EncodedCommand): Promise<CommandResponse> {
    return this.#sequencer?.proposeEncoded(command, encoded) ?? Promise.reject(notLeading());
  }

  /**
   * Resolves when an append that begins after this call has returned, which proves that no other server led at that
   * time. Rejects while this server does not lead.
   */
  barrier(): Promise<void> {
    return this.#sequencer?.barrier() ?? Promise.reject(notLeading());
  }

  /** The link to the leader has opened, or closed (undefined). Waiting proposals are sent. */
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
   * Appends a claim directly after the position that is applied at the call. This server leads if no other entry came
   * in between. Must not be called while this server leads.
   */
  async claim(claim: { readonly leader: string; readonly leaderLeaseMs: number }): Promise<ClaimOutcome> {
    const { index } = this.position;
    // The engine takes one append at a time. The last append of an earlier epoch may still be in flight, for as long as
    // a broken connection takes to fail. The follow loop runs meanwhile.
    await this.#lastAppend;
    await this.#follow.stop();
    if (this.#stopping.signal.aborted) return 'unclear';
    // An entry or snapshot applied meanwhile may hold another server's claim, whose leader lease must be waited out.
    if (this.position.index !== index) {
      this.#followOthers();
      return 'lost';
    }
    const { engine, onFact } = this.#options;
    const epoch = this.state.epoch + 1;
    const command: Command = { kind: 'claim', epoch, ...claim };
    const headers: EntryHeaders = { epoch, timeMs: this.state.clusterTimeMs };
    const encoded = [encodeCommand(command)];
    try {
      const position = await engine.append([encodeEntry(headers, encoded)], this.position);
      // A stopped server has no way to step down. Its claim expires like that of a killed server.
      if (this.#stopping.signal.aborted) return 'unclear';
      this.#sequencer = this.#newSequencer(position, epoch);
      this.#applier.apply(position, headers, encoded, [command]);
      this.#handAll();
      return 'leads';
    } catch (error) {
      this.#sequencer = undefined;
      this.#followOthers();
      if (!this.isShared || !(error instanceof EngineError)) throw error;
      if (error.code === 'conflict') return 'lost';
      onFact({ kind: 'appendFailed', error });
      if (error.code === 'unknown' || error.code === 'unavailable') return 'unclear';
      throw error;
    }
  }

  /** Begins no further append in this epoch, and follows again. Ignored if this server does not lead in `epoch`. */
  stepDown(epoch: number): void {
    if (this.#sequencer?.epoch !== epoch) return;
    this.#sequencer.retire();
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
    this.#collector.stop();
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

  #newSequencer(position: Position, epoch: number): Sequencer {
    const { engine, clock, authority, metrics, onFact } = this.#options;
    return new Sequencer({
      engine,
      position,
      epoch,
      authority,
      rowsOf: (command, atMost) => this.state.countRows(command, atMost),
      apply: (at, headers, encoded, commands) => this.#applier.apply(at, headers, encoded, commands),
      appended: (commands, bytes, permit) => {
        const durationMs = clock.monotonicMs() - permit.began.monotonicMs;
        metrics.appended({ entries: 1, commands, bytes, durationMs });
        onFact({ kind: 'appended', permit });
        this.#snapshotter.appended(bytes);
      },
      failed: (error) => this.#sequencerFailed(error),
      clock,
      maxPendingCommands: this.#options.maxPendingCommands,
    });
  }

  #sequencerFailed(error: Error): void {
    const passing = error instanceof ProposalError || (error instanceof EngineError && error.isPassing);
    const { onFact } = this.#options;
    onFact({ kind: 'appendFailed', error });
    if (passing && this.isShared) this.#deposed();
    else onFact({ kind: 'failed', error });
  }

  #deposed(): void {
    if (this.#sequencer === undefined) return;
    this.#lastAppend = this.#sequencer.appendSettled();
    this.#sequencer = undefined;
    this.#followOthers();
    this.#leaderLeaseReads.deposed();
    this.#options.onFact({ kind: 'deposed' });
  }

  #followOthers(): void {
    if (this.isShared && !this.#stopping.signal.aborted) this.#follow.start();
  }

  #mayReadByLease(): boolean {
    const { readsByLease, authority } = this.#options;
    return readsByLease && authority.mayRead();
  }

  #onApplied(entry: Entry, applied: Applied, beganMs: number): void {
    const first = entry.commands[0];
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#pending.claimed(first.epoch);
    this.#options.onFact({ kind: 'applied', entry, applied, beganMs, leads: this.leading });
    if (entry.commands.some(({ kind }) => kind === 'compact')) this.#collector.wake();
  }

  /**
   * Called by the follow loop when the entries after the applied position were trimmed. A claim waits until the load
   * has finished, and is then lost. If a claim aborted the load, a load longer than the election timeout would never
   * finish.
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
    this.#collector.wake();
    this.#applier.skipTo(loaded.position);
    this.#options.onFact({ kind: 'loaded', position: loaded.position });
    this.#handAll();
  }

  #hand(proposal: PendingProposal): void {
    if (proposal.epoch !== undefined) return;
    const { sequence } = proposal.encoded.origin;
    const { epoch } = this.state;
    if (this.#sequencer !== undefined) {
      // While this server followed, the command was for another leader to judge.
      const refusal = this.#options.refusal?.(proposal.command);
      if (refusal !== undefined) return this.#pending.refuse(sequence, refusal);
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
    // Reads whose answer was lost ask again, and returned proposals are sent again.
    this.#handAll();
  }
}

function notLeading(): ProposalError {
  return new ProposalError('deposed', 'this server does not lead');
}
