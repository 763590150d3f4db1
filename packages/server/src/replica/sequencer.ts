import { countOperations, type Command, type CommandResponse } from '@tenure/core';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine, LoggedEntry, Position } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import { encodeCommand } from './command-codec.ts';
import { encodeEntry, type EncodedCommand, type EntryHeaders } from './entry-codec.ts';
import { ProposalError } from './proposal-error.ts';

/** A batch takes at most this many commands, so that one apply stays short. */
const maxBatchCommands = 1_024;
/** The same for the operations in it, each of which may be a write: a transaction has up to 128. */
const maxBatchOperations = 8_192;
/**
 * The same for the keys that its commands look at or delete. One command may do more: a delete of a range, or the end
 * of a lease with many keys, is one revision; it is a batch of its own then.
 */
const maxBatchRows = 50_000;
/** A batch closes when its payloads have passed this. */
const maxBatchBytes = 4 * 1024 * 1024;
/** What may wait for the log; more is refused as overloaded. */
const maxPendingCommands = 65_536;
const maxPendingBytes = 256 * 1024 * 1024;

/**
 * Dates come in bulk, and nobody waits for them: they have entries of their own, so that no client's write and no
 * heartbeat is held up in one append and one apply with them (rule 7). A claim begins an epoch, and so its entry; a
 * resignation is the last entry of one.
 */
function travelsAlone(command: Command): boolean {
  return command.kind === 'checkpointLeases' || command.kind === 'claim' || command.kind === 'resign';
}

/** How many writes a command may come to, as far as it says so itself. */
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

/** What may make a new revision. */
const revisionMakers: ReadonlySet<Command['kind']> = new Set([
  'put',
  'deleteRange',
  'txn',
  'leaseRevoke',
  'expireLeases',
]);

/** Somebody who waits for an append that begins after the question. */
interface Barrier {
  readonly resolve: () => void;
  readonly reject: (error: ProposalError) => void;
}

export interface SequencerOptions {
  readonly engine: LogEngine;
  /** Where the log ended when this server had applied all of it. */
  readonly position: Position;
  /** The headers for a batch whose append begins now. */
  readonly headers: (first: Command | undefined) => EntryHeaders;
  /** How many keys a command would look at or delete now; about `atMost` if they are more. */
  readonly rowsOf: (command: Command, atMost: number) => number;
  /** Applies a durable batch. Its responses answer the proposals, in order. */
  readonly apply: (
    position: Position,
    headers: EntryHeaders,
    encoded: readonly EncodedCommand[],
    commands: readonly Command[],
  ) => readonly CommandResponse[];
  /** Asked before each append; when it says no, the sequencer retires. */
  readonly mayAppend?: () => boolean;
  readonly appended: (commands: number, bytes: number, beganMs: number) => void;
  /** The engine failed, or an entry could not be applied. Nothing more is appended; told once. */
  readonly failed: (error: Error) => void;
  readonly clock: Clock;
}

/**
 * The one place where the log grows. Commands that arrive while an append is out join the batch that goes next; the
 * first of an idle spell waits for the end of the event loop's turn, so that all requests read in that turn share an
 * append.
 */
export class Sequencer {
  readonly #options: SequencerOptions;
  #position: Position;
  #pending: Proposal[] = [];
  #pendingBytes = 0;
  #busy = false;
  #stopped: ProposalError | undefined;
  #retired = false;
  #idle: (() => void)[] = [];
  #barriers: Barrier[] = [];
  #append: Promise<void> = Promise.resolve();
  /** Resolves when the append that is out has come back, or nobody may wait for it any more. */
  #settled: Promise<void> = Promise.resolve();
  #settle: () => void = () => {};
  /** What the append that is out carries. */
  #out: readonly Proposal[] = [];
  /** Who waits for the append that is out to come back. */
  #barriersOut: readonly Barrier[] = [];
  #isAppending = false;
  /** The leases that the append which is out grants or revokes. */
  #leasesOut: ReadonlySet<bigint> = noLeases;
  /** Whether it may make revisions. */
  #revisionsOut = false;
  #lastAppendBeganMs: number;
  #lastAppended: LoggedEntry | undefined;

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#position = options.position;
    this.#lastAppendBeganMs = options.clock.monotonicMs();
  }

  get position(): Position {
    return this.#position;
  }

  get lastAppended(): LoggedEntry | undefined {
    return this.#lastAppended;
  }

  get lastAppendBeganMs(): number {
    return this.#lastAppendBeganMs;
  }

  /** Resolves when the engine has settled the append that is out, if any. Never rejects. */
  appendSettled(): Promise<void> {
    return this.#append;
  }

  /**
   * While an append is out that grants or revokes this lease: a promise that resolves when the engine has settled it,
   * or this server has ceased to lead. Another server may have read the entry in the log, and acknowledged it, before
   * this one has the engine's answer; what only memory decides about the lease must wait.
   */
  leaseSettled(id: bigint): Promise<void> | undefined {
    return this.#leasesOut.has(id) ? this.#settled : undefined;
  }

  /**
   * While an append is out that may make new revisions: a promise that resolves when the engine has settled it, or this
   * server has ceased to lead. A follower may have read it in the log, and told its client of a revision that this
   * server does not know yet.
   */
  revisionSettled(): Promise<void> | undefined {
    return this.#revisionsOut ? this.#settled : undefined;
  }

  /**
   * A promise that resolves when the append that is out now has come back and was applied, or failed; undefined when
   * none is out.
   */
  appendOut(): Promise<void> | undefined {
    return this.#isAppending ? this.#append : undefined;
  }

  /** Resolves when the append that is out now, if any, has come to its end; rejects once the log has failed. */
  appendReturned(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return this.#append;
  }

  /**
   * Resolves when the command has been applied; by then it is durable. `raw` is the request as it came in, for
   * commands whose payload in the log is etcd's own message; it must stay untouched until the promise settles. Rejects
   * as timed out where the engine could not tell the outcome, or this server ceased to lead before it did.
   */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse> {
    return this.proposeEncoded(command, encodeCommand(command, raw));
  }

  /**
   * As `propose`, for a command whose encoding is at hand. With an origin, an outcome that the engine could not tell
   * leaves the promise as it is: whoever follows the log will read it there.
   */
  proposeEncoded(command: Command, encoded: EncodedCommand): Promise<CommandResponse> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    if (this.#pending.length >= maxPendingCommands || this.#pendingBytes >= maxPendingBytes) {
      return Promise.reject(new ProposalError('overloaded', 'too many requests wait for the log'));
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, encoded, resolve, reject });
      this.#pendingBytes += encoded.payload.length;
      this.#wake();
    });
  }

  /**
   * Resolves when an append that began after this call has come back and was applied: then nobody else led when it
   * was made. One append serves all who wait; if no command is there to be appended, it is an entry without any.
   */
  barrier(): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#barriers.push({ resolve, reject });
      this.#wake();
    });
  }

  /**
   * Begins no further append. What waits is refused as deposed; the outcome of an append that is out is left to
   * whoever reads the log next, and is not applied here.
   */
  retire(): void {
    this.#refuseWaiting(new ProposalError('deposed', 'this server does not lead any more'));
  }

  /** Refuses new commands, and resolves when those that were accepted have been answered. */
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
    const { engine, headers, mayAppend, clock } = this.#options;
    if (mayAppend?.() === false) {
      const lapsed = new ProposalError('deposed', 'the right to lead has lapsed');
      for (const { reject } of [...batch, ...barriers]) reject(lapsed);
      this.#fail(lapsed);
      return;
    }
    const beganMs = clock.monotonicMs();
    this.#lastAppendBeganMs = beganMs;
    const stamped = headers(batch[0]?.command);
    const encoded = batch.map((each) => each.encoded);
    const bytes = encodeEntry(stamped, encoded);
    this.#leasesOut = leasesIn(batch);
    this.#out = batch;
    this.#barriersOut = barriers;
    this.#revisionsOut = batch.some(({ command }) => revisionMakers.has(command.kind));
    this.#isAppending = true;
    this.#settled = new Promise((resolve) => (this.#settle = resolve));
    this.#append = engine.append([bytes], this.#position).then(
      (position) => {
        this.#leasesOut = noLeases;
        this.#revisionsOut = false;
        this.#isAppending = false;
        if (this.#retired) return;
        this.#out = [];
        this.#barriersOut = [];
        this.#lastAppended = { position, bytes };
        this.#options.appended(batch.length, bytes.length, beganMs);
        this.#applied(position, stamped, encoded, batch);
        for (const { resolve } of barriers) resolve();
        this.#settle();
        if (!this.#retired) this.#appendNext();
      },
      (error: Error) => {
        this.#isAppending = false;
        if (this.#retired) return;
        // Whether an append took place that the engine cannot tell of is read from the log; nobody may be told before.
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

  /** After a failure nothing is ever appended again. */
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
    const unclear = new ProposalError('timeout', 'this server ceased to lead before it knew the outcome');
    for (const { encoded, reject } of this.#out) if (encoded.origin === undefined) reject(unclear);
    this.#out = [];
    this.#settle();
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/**
 * Those with an origin would be handed to the next leader: they are told only what certainly was not appended, and read
 * anything else in the log.
 */
function refuse(batch: readonly Proposal[], error: Error): void {
  const wasNotAppended = error instanceof EngineError && (error.code === 'conflict' || error.code === 'unavailable');
  const refusal = refusalOf(error);
  for (const { encoded, reject } of batch) if (wasNotAppended || encoded.origin === undefined) reject(refusal);
}

/** What those are told whose commands were certainly not appended, or whom nobody will tell any more. */
function refusalOf(error: Error): ProposalError {
  if (error instanceof ProposalError) return error;
  const passing = error instanceof EngineError && error.isPassing;
  return new ProposalError(passing ? 'deposed' : 'stopped', `the log failed: ${error.message}`);
}
