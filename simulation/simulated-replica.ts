import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { StateMachine, type Applied, type Command, type CommandResponse, type Entry } from '@tenure/core';
import type { LeadershipPort } from '../packages/server/src/election/leadership.ts';
import { PendingProposals, type PendingProposal } from '../packages/server/src/replica/pending-proposals.ts';
import { ProposalError } from '../packages/server/src/replica/proposal-error.ts';
import type { LogEntry, ProposedCommand, SharedLog } from './shared-log.ts';

export interface SimulatedReplicaOptions {
  readonly run: number;
  readonly clock: NodeClock;
  readonly log: SharedLog;
  readonly random: SeededRandom;
  readonly stampMs: () => number;
  readonly mayAppend: () => boolean;
  readonly onAppended: () => void;
  readonly onApplied: (entry: Entry, applied: Applied) => void;
  readonly onDeposed: () => void;
  /** Renewals do not wait for a grant or revocation that is out: a mutation. */
  readonly appendOutIgnored: boolean;
  /** Hands a proposal to whoever leads, if there is a way to it. */
  readonly forward: (proposal: PendingProposal) => boolean;
}

interface Barrier {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A command that waits to be appended; `settle` where this server's leader waits for it, in this epoch only. */
interface QueuedCommand extends ProposedCommand {
  readonly settle?: {
    readonly resolve: (response: CommandResponse) => void;
    readonly reject: (error: Error) => void;
  };
}

interface IndexWaiter {
  readonly index: number;
  readonly resolve: () => void;
}

const requestTimeoutMs = 7_000;
const expiryIntervalMs = 250;

/**
 * What the replica of a server does, as far as leadership can see it: it appends in order while it leads, follows while
 * it does not, hands proposals to whoever leads, and reads their outcome from the log.
 */
export class SimulatedReplica implements LeadershipPort {
  readonly isShared = true;
  readonly state = new StateMachine();
  lastAppendBeganMs = 0;
  leading = false;
  readonly #options: SimulatedReplicaOptions;
  readonly #pending: PendingProposals;
  #queue: QueuedCommand[] = [];
  #barriers: Barrier[] = [];
  #waiters: IndexWaiter[] = [];
  /** Of the spell of leading: what belongs to an earlier one is dead. */
  #spell = 0;
  #busy = false;
  #following = false;
  #leasesOut: ReadonlySet<bigint> = new Set();
  #lastAppend: Promise<unknown> = Promise.resolve();

  constructor(options: SimulatedReplicaOptions) {
    this.#options = options;
    this.#pending = new PendingProposals(options.run, requestTimeoutMs);
    for (const entry of options.log.entries) this.state.apply(toEntry(entry));
  }

  start(): void {
    this.#follow();
    this.#expire();
  }

  propose(command: Command): Promise<CommandResponse> {
    const { proposal, outcome } = this.#pending.add(command, undefined, this.#options.clock.monotonicMs());
    this.#hand(proposal);
    return outcome;
  }

  /** As Replica.proposeHere: appended in this epoch or never. */
  proposeHere(command: Command): Promise<CommandResponse> {
    if (!this.leading) return Promise.reject(new ProposalError('deposed', 'this server does not lead'));
    return new Promise((resolve, reject) => {
      this.#queue.push({ command, origin: undefined, settle: { resolve, reject } });
      this.#wake();
    });
  }

  /** A command that another server has handed over. Returns whether it will be appended, as far as one can know. */
  proposeFor(proposed: ProposedCommand): boolean {
    if (!this.leading) return false;
    this.#queue.push(proposed);
    this.#wake();
    return true;
  }

  barrier(): Promise<void> {
    if (!this.leading) return Promise.reject(new ProposalError('deposed', 'this server does not lead'));
    return new Promise((resolve, reject) => {
      this.#barriers.push({ resolve, reject });
      this.#wake();
    });
  }

  async claim(claim: { readonly leader: string; readonly rightMs: number }): Promise<'leads' | 'lost' | 'unclear'> {
    const { clock, log, onAppended } = this.#options;
    const { appliedIndex } = this.state;
    // What others append is followed meanwhile, and may be the claim of another, whose right must be waited out.
    await this.#lastAppend;
    this.#following = false;
    if (this.state.appliedIndex !== appliedIndex) {
      this.#follow();
      return 'lost';
    }
    const epoch = this.state.epoch + 1;
    const index = this.state.appliedIndex + 1;
    const proposed = [{ command: { kind: 'claim', epoch, ...claim } as const, origin: undefined }];
    const entry: LogEntry = { index, epoch, timeMs: this.state.clusterTimeMs, proposed };
    this.lastAppendBeganMs = clock.monotonicMs();
    const outcome = await log.append(clock, entry);
    if (outcome !== 'ok') {
      this.#follow();
      return outcome === 'conflict' ? 'lost' : 'unclear';
    }
    this.leading = true;
    this.#spell += 1;
    this.#leasesOut = new Set();
    this.#apply(entry);
    onAppended();
    this.#handAll();
    return 'leads';
  }

  stepDown(): void {
    if (!this.leading) return;
    this.leading = false;
    this.#spell += 1;
    this.#busy = false;
    const deposed = new ProposalError('deposed', 'this server does not lead any more');
    for (const queued of this.#queue.splice(0)) this.#refused(queued);
    for (const { reject } of this.#barriers.splice(0)) reject(deposed);
    this.#follow();
    this.#options.onDeposed();
  }

  /** As the sequencer: while an append is out that grants or revokes this lease, what memory knows of it must wait. */
  leaseSettled(id: bigint): Promise<void> | undefined {
    const out = this.leading && !this.#options.appendOutIgnored && this.#leasesOut.has(id);
    return out ? this.#lastAppend.then(() => undefined) : undefined;
  }

  /** No command here makes a revision: there are no keys. */
  revisionSettled(): undefined {
    return undefined;
  }

  whenApplied(index: number): Promise<void> {
    if (this.state.appliedIndex >= index) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ index, resolve }));
  }

  /** The leader of that epoch has not appended it and will not. */
  returned(sequence: number, epoch: number): void {
    this.#pending.returned(sequence, epoch);
    this.#handAll();
  }

  /** The way to the leader has opened. */
  linked(): void {
    this.#handAll();
  }

  /** There is more in the log. */
  noticed(): void {
    if (this.#following) this.#read();
  }

  #follow(): void {
    this.#following = true;
    this.#read();
  }

  #read(): void {
    const { clock, log } = this.#options;
    log.read(clock, (length) => {
      if (!this.#following) return;
      while (this.#following && this.state.appliedIndex < length) {
        this.#apply(log.entries[this.state.appliedIndex] as LogEntry);
      }
    });
  }

  #apply(entry: LogEntry): readonly CommandResponse[] {
    const applied = this.state.apply(toEntry(entry));
    const first = entry.proposed[0]?.command;
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#pending.claimed(first.epoch);
    this.#options.onApplied(toEntry(entry), applied);
    for (let at = 0; at < entry.proposed.length; at += 1) {
      const origin = entry.proposed[at]?.origin;
      if (origin !== undefined) this.#pending.applied(origin, applied.responses[at] as CommandResponse);
    }
    const reached = this.#waiters.filter(({ index }) => index <= entry.index);
    this.#waiters = this.#waiters.filter(({ index }) => index > entry.index);
    for (const { resolve } of reached) resolve();
    return applied.responses;
  }

  #wake(): void {
    if (this.#busy) return;
    this.#busy = true;
    const spell = this.#spell;
    this.#options.clock.deliver(0, () => {
      if (spell === this.#spell) void this.#appendNext();
    });
  }

  async #appendNext(): Promise<void> {
    const { clock, log, stampMs, mayAppend, onAppended } = this.#options;
    const spell = this.#spell;
    while (spell === this.#spell) {
      const barriers = this.#barriers.splice(0);
      const batch = this.#takeBatch();
      if (batch.length === 0 && barriers.length === 0) break;
      const may = mayAppend();
      const entry = {
        index: this.state.appliedIndex + 1,
        epoch: this.state.epoch,
        timeMs: stampMs(),
        proposed: batch.map(({ command, origin }) => ({ command, origin })),
      };
      if (may) this.lastAppendBeganMs = clock.monotonicMs();
      this.#leasesOut = leasesIn(batch);
      const append = may ? log.append(clock, entry) : Promise.resolve('unavailable' as const);
      // Whoever waits for the append goes on when it has been applied, as with the sequencer.
      this.#lastAppend = append.then(() => undefined).then(() => undefined);
      const outcome = await append;
      if (spell === this.#spell) this.#leasesOut = new Set();
      if (outcome === 'ok' && spell === this.#spell) {
        onAppended();
        const responses = this.#apply(entry);
        for (let at = 0; at < batch.length; at += 1) batch[at]?.settle?.resolve(responses[at] as CommandResponse);
        for (const { resolve } of barriers) resolve();
        continue;
      }
      for (const { reject } of barriers) reject(new ProposalError('deposed', 'this server does not lead any more'));
      const isKnown = outcome !== 'ok' && outcome !== 'unknown';
      for (const queued of batch) if (isKnown || queued.settle !== undefined) this.#refused(queued);
      if (spell === this.#spell) this.stepDown();
      return;
    }
    if (spell === this.#spell) this.#busy = false;
  }

  /** Dates and resignations travel alone, as in the sequencer. */
  #takeBatch(): QueuedCommand[] {
    const alone = this.#queue.findIndex(({ command: { kind } }) => kind === 'checkpointLeases' || kind === 'resign');
    return this.#queue.splice(0, alone < 0 ? this.#queue.length : Math.max(1, alone));
  }

  #refused({ origin, settle }: QueuedCommand): void {
    settle?.reject(new ProposalError('deposed', 'this server does not lead any more'));
    if (origin?.run === this.#options.run) this.returned(origin.sequence, this.state.epoch);
  }

  #hand(proposal: PendingProposal): void {
    if (proposal.epoch !== undefined) return;
    const { epoch } = this.state;
    if (this.leading) {
      proposal.epoch = epoch;
      this.proposeFor({ command: proposal.command, origin: proposal.encoded.origin });
    } else if (this.#options.forward(proposal)) proposal.epoch = epoch;
  }

  #handAll(): void {
    for (const proposal of this.#pending.waiting()) this.#hand(proposal);
  }

  #expire(): void {
    this.#pending.expire(this.#options.clock.monotonicMs());
    this.#handAll();
    this.#options.clock.after(expiryIntervalMs, () => this.#expire());
  }
}

function leasesIn(batch: readonly ProposedCommand[]): ReadonlySet<bigint> {
  const ids = new Set<bigint>();
  for (const { command } of batch) {
    if (command.kind === 'leaseGrant' || command.kind === 'leaseRevoke') ids.add(command.id);
  }
  return ids;
}

/** What the state machine gets to see of an entry. */
export function toEntry({ index, epoch, timeMs, proposed }: LogEntry): Entry {
  return { index, epoch, timeMs, commands: proposed.map(({ command }) => command) };
}
