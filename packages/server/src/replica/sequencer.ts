import { countOperations, type Command, type CommandResponse } from '@tenure/core';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine, LoggedEntry, Position } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import type { AppendAuthority, AppendPermit } from './append-permit.ts';
import { encodeCommand } from './command-codec.ts';
import { encodeEntry, type EncodedCommand, type EntryHeaders } from './entry-codec.ts';
import { ProposalError } from './proposal-error.ts';

/** Limit on the commands of a batch, so that one apply stays short. */
const maxBatchCommands = 1_024;
/** Limit on the operations of a batch, each of which may be a write: a transaction has up to 128. */
const maxBatchOperations = 8_192;
/**
 * Limit on the keys that the commands of a batch read or delete. A single command may exceed it: the delete of a range,
 * or the end of a lease with many keys, is one revision and then a batch of its own.
 */
const maxBatchRows = 50_000;
/** A batch is closed when its payloads exceed this size. */
const maxBatchBytes = 4 * 1024 * 1024;
/** Limits on proposals that wait for the log; more are refused as overloaded. */
const defaultMaxPendingCommands = 65_536;
const maxPendingBytes = 256 * 1024 * 1024;

/**
 * Checkpoints are large, and no client waits for them. They have entries of their own, so that neither a client's write
 * nor a heartbeat shares an append and an apply with them (rule 7). A claim begins an epoch and is its first entry; a
 * resignation is the last entry of an epoch.
 */
function travelsAlone(command: Command): boolean {
  return command.kind === 'checkpointLeases' || command.kind === 'claim' || command.kind === 'resign';
}

/** The number of writes that a command may cause, according to its request. */
function operationsOf(command: Command): number {
  return command.kind === 'txn' ? 1 + countOperations(command.txn) : 1;
}

interface Proposal {
  readonly command: Command;
  readonly encoded: EncodedCommand;
  readonly resolve: (response: CommandResponse) => void;
  readonly reject: (error: ProposalError) => void;
}

const noLeases: ReadonlySet<bigint> = new Set();

/** The leases that a batch grants or revokes. */
function leasesIn(batch: readonly Proposal[]): ReadonlySet<bigint> {
  let ids: Set<bigint> | undefined;
  for (const { command } of batch) {
    if (command.kind === 'leaseGrant' || command.kind === 'leaseRevoke') (ids ??= new Set()).add(command.id);
  }
  return ids ?? noLeases;
}

/** The commands that may create a revision. */
const revisionMakers: ReadonlySet<Command['kind']> = new Set([
  'put',
  'deleteRange',
  'txn',
  'leaseRevoke',
  'expireLeases',
]);

/** A caller that waits for an append that begins after its call. */
interface Barrier {
  readonly resolve: () => void;
  readonly reject: (error: ProposalError) => void;
}

export interface SequencerOptions {
  readonly engine: LogEngine;
  /** The end of the log when this server had applied all of it. */
  readonly position: Position;
  /** The epoch in which this server leads, written to every entry that it appends. */
  readonly epoch: number;
  /** Asked directly before each append. Without a permit, the sequencer retires. */
  readonly authority: Pick<AppendAuthority, 'beginAppend'>;
  /** The number of keys that a command would read or delete now; about `atMost` if there are more. */
  readonly rowsOf: (command: Command, atMost: number) => number;
  /** Applies a durable batch. The responses answer the proposals, in order. */
  readonly apply: (
    position: Position,
    headers: EntryHeaders,
    encoded: readonly EncodedCommand[],
    commands: readonly Command[],
  ) => readonly CommandResponse[];
  /** An append has returned; its entry is applied next. */
  readonly appended: (commands: number, bytes: number, permit: AppendPermit) => void;
  /** The engine failed, or an entry could not be applied. Nothing more is appended. Called once. */
  readonly failed: (error: Error) => void;
  readonly clock: Pick<Clock, 'soon'>;
  /** 65,536 by default. */
  readonly maxPendingCommands?: number | undefined;
}

/**
 * The only writer of the log on this server. Commands that arrive while an append is in flight join the next batch. The
 * first command after an idle period waits for the end of the event loop's turn, so that all requests read in that turn
 * share an append.
 */
export class Sequencer {
  readonly #options: SequencerOptions;
  readonly #maxPendingCommands: number;
  #position: Position;
  #pending: Proposal[] = [];
  #pendingBytes = 0;
  #busy = false;
  #stopped: ProposalError | undefined;
  #retired = false;
  #idle: (() => void)[] = [];
  #barriers: Barrier[] = [];
  #append: Promise<void> = Promise.resolve();
  /** Resolves when the append in flight has returned, or no caller may wait for it any more. */
  #settled: Promise<void> = Promise.resolve();
  #settle: () => void = () => {};
  /** The proposals of the append in flight. */
  #out: readonly Proposal[] = [];
  /** The barriers that wait for the append in flight. */
  #barriersOut: readonly Barrier[] = [];
  #isAppending = false;
  /** The leases that the append in flight grants or revokes. */
  #leasesOut: ReadonlySet<bigint> = noLeases;
  /** Whether the append in flight may create revisions. */
  #revisionsOut = false;
  /** Whether the append in flight changes users, roles or permissions. */
  #authOut = false;
  #lastAppended: LoggedEntry | undefined;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#position = options.position;
    this.#maxPendingCommands = options.maxPendingCommands ?? defaultMaxPendingCommands;
  }

  get epoch(): number {
    return this.#options.epoch;
  }

  get position(): Position {
    return this.#position;
  }

  get lastAppended(): LoggedEntry | undefined {
    return this.#lastAppended;
  }

  /** Resolves when the engine has settled the append in flight, if any. Never rejects. */
  appendSettled(): Promise<void> {
    return this.#append;
  }

  /**
   * While an append is in flight that grants or revokes this lease: a promise that resolves when the engine has settled
   * it, or when this server has stopped leading. Another server may have read the entry in the log and acknowledged it
   * before this one has the engine's answer, so answers from memory about the lease must wait.
   */
  leaseSettled(id: bigint): Promise<void> | undefined {
    return this.#leasesOut.has(id) ? this.#settled : undefined;
  }

  /**
   * While an append is in flight that may create revisions: a promise that resolves when the engine has settled it, or
   * when this server has stopped leading. A follower may have read the entry in the log and named a revision to its
   * client that this server does not know yet.
   */
  revisionSettled(): Promise<void> | undefined {
    return this.#revisionsOut ? this.#settled : undefined;
  }

  /**
   * The same while an append is in flight that changes users, roles or permissions: a follower may have acknowledged
   * the change, and nothing may be allowed by the permissions before it.
   */
  authSettled(): Promise<void> | undefined {
    return this.#authOut ? this.#settled : undefined;
  }

  /**
   * A promise that resolves when the append in flight has returned and was applied, or failed; undefined when none is
   * in flight.
   */
  appendOut(): Promise<void> | undefined {
    return this.#isAppending ? this.#append : undefined;
  }

  /** Resolves when the append in flight, if any, has finished. Rejects once the log has failed. */
  appendReturned(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return this.#append;
  }

  /**
   * Resolves when the command is durable and applied. `raw` is the encoded request, for commands whose payload in the
   * log is etcd's own message; it must not change until the promise settles. Rejects as timed out if the engine could
   * not tell the outcome, or if this server stopped leading before it was known.
   */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse> {
    return this.proposeEncoded(command, encodeCommand(command, raw));
  }

  /**
   * As `propose`, for a command that is already encoded. With an origin, the promise stays pending if the engine could
   * not tell the outcome: the origin's server reads it from the log.
   */
  proposeEncoded(command: Command, encoded: EncodedCommand): Promise<CommandResponse> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    if (this.#pending.length >= this.#maxPendingCommands || this.#pendingBytes >= maxPendingBytes) {
      return Promise.reject(new ProposalError('overloaded', 'too many requests wait for the log'));
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, encoded, resolve, reject });
      this.#pendingBytes += encoded.payload.length;
      this.#wake();
    });
  }

  /**
   * Resolves when an append that began after this call has returned and was applied, which proves that no other server
   * led at that time. One append serves all waiting barriers. Without a command to append, the entry is empty.
   */
  barrier(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#barriers.push({ resolve, reject });
      this.#wake();
    });
  }

  /**
   * Begins no further append. Waiting proposals are refused as deposed. The outcome of the append in flight is read
   * from the log later, and is not applied here.
   */
  retire(): void {
    this.#refuseWaiting(new ProposalError('deposed', 'this server does not lead any more'));
  }

  /** Refuses new commands. Resolves when the accepted ones have been answered. */
  async stop(): Promise<void> {
    this.#stopped ??= new ProposalError('stopped', 'the server is stopping');
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #wake(): void {
    if (this.#busy) return;
    this.#busy = true;
    this.#options.clock.soon(() => this.#appendNext());
  }

  #appendNext(): void {
    const barriers = this.#barriers.splice(0);
    const batch = this.#takeBatch();
    if (batch.length === 0 && barriers.length === 0) {
      this.#busy = false;
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    const { engine, epoch, authority } = this.#options;
    const permit = authority.beginAppend();
    if (permit === undefined) {
      const lapsed = new ProposalError('deposed', 'the leader lease has ended');
      for (const { reject } of [...batch, ...barriers]) reject(lapsed);
      this.#fail(lapsed);
      return;
    }
    const headers = { epoch, timeMs: permit.timeMs };
    const encoded = batch.map((each) => each.encoded);
    const bytes = encodeEntry(headers, encoded);
    this.#leasesOut = leasesIn(batch);
    this.#out = batch;
    this.#barriersOut = barriers;
    this.#revisionsOut = batch.some(({ command }) => revisionMakers.has(command.kind));
    this.#authOut = batch.some(({ command }) => command.kind === 'auth');
    this.#isAppending = true;
    this.#settled = new Promise((resolve) => (this.#settle = resolve));
    this.#append = engine.append([bytes], this.#position).then(
      (position) => {
        this.#leasesOut = noLeases;
        this.#revisionsOut = false;
        this.#authOut = false;
        this.#isAppending = false;
        if (this.#retired) return;
        this.#out = [];
        this.#barriersOut = [];
        this.#lastAppended = { position, bytes };
        this.#options.appended(batch.length, bytes.length, permit);
        this.#applied(position, headers, encoded, batch);
        for (const { resolve } of barriers) resolve();
        this.#settle();
        if (!this.#retired) this.#appendNext();
      },
      (error: Error) => {
        this.#isAppending = false;
        if (this.#retired) return;
        // If the engine cannot tell whether the append took place, the log can. Until then no proposer is answered.
        const isUnknown = error instanceof EngineError && error.code === 'unknown';
        if (!isUnknown) refuse(batch, error);
        this.#fail(error);
      },
    );
  }

  #takeBatch(): Proposal[] {
    let count = 0;
    let bytes = 0;
    let operations = 0;
    let rows = 0;
    for (const { command, encoded } of this.#pending) {
      if (count >= maxBatchCommands || bytes >= maxBatchBytes || operations >= maxBatchOperations) break;
      const alone = travelsAlone(command);
      if (alone && count > 0) break;
      rows += this.#options.rowsOf(command, maxBatchRows);
      if (rows > maxBatchRows && count > 0) break;
      count += 1;
      bytes += encoded.payload.length;
      operations += operationsOf(command);
      if (alone) break;
    }
    this.#pendingBytes -= bytes;
    if (count < this.#pending.length) return this.#pending.splice(0, count);
    const batch = this.#pending;
    this.#pending = [];
    return batch;
  }

  #applied(
    position: Position,
    headers: EntryHeaders,
    encoded: readonly EncodedCommand[],
    batch: readonly Proposal[],
  ): void {
    let responses: readonly CommandResponse[];
    try {
      this.#position = position;
      const commands = batch.map(({ command }) => command);
      responses = this.#options.apply(position, headers, encoded, commands);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      refuse(batch, failure);
      this.#fail(failure);
      return;
    }
    for (let index = 0; index < batch.length; index += 1) {
      (batch[index] as Proposal).resolve(responses[index] as CommandResponse);
    }
  }

  /** Nothing is appended after a failure. */
  #fail(error: Error): void {
    this.#refuseWaiting(refusalOf(error));
    this.#options.failed(error);
  }

  #refuseWaiting(refusal: ProposalError): void {
    this.#retired = true;
    this.#stopped = refusal;
    this.#busy = false;
    const barriers = [...this.#barriersOut, ...this.#barriers.splice(0)];
    this.#barriersOut = [];
    for (const { reject } of [...this.#pending.splice(0), ...barriers]) reject(refusal);
    const unclear = new ProposalError('timeout', 'this server stopped leading before it knew the outcome');
    for (const { encoded, reject } of this.#out) if (encoded.origin === undefined) reject(unclear);
    this.#out = [];
    this.#settle();
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/**
 * A proposal with an origin would be sent to the next leader. It is refused only if it was certainly not appended; any
 * other outcome is read from the log.
 */
function refuse(batch: readonly Proposal[], error: Error): void {
  const wasNotAppended = error instanceof EngineError && (error.code === 'conflict' || error.code === 'unavailable');
  const refusal = refusalOf(error);
  for (const { encoded, reject } of batch) if (wasNotAppended || encoded.origin === undefined) reject(refusal);
}

/** The error for proposals that were certainly not appended, or that no server will answer any more. */
function refusalOf(error: Error): ProposalError {
  if (error instanceof ProposalError) return error;
  const passing = error instanceof EngineError && error.isPassing;
  return new ProposalError(passing ? 'deposed' : 'stopped', `the log failed: ${error.message}`);
}
