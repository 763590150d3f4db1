import type { Command, CommandResponse } from '@tenure/core';
import { encodeCommand } from './command-codec.ts';
import type { EncodedCommand, Origin } from './entry-codec.ts';
import type { ClientReason } from './client-reason.ts';
import { ProposalError } from './proposal-error.ts';

export interface PendingProposal {
  readonly command: Command;
  readonly encoded: EncodedCommand & { readonly origin: Origin };
  readonly expiresMs: number;
  /** The epoch of the leader that received it; undefined while it waits for a leader. */
  epoch: number | undefined;
  readonly resolve: (response: CommandResponse) => void;
  readonly reject: (error: Error) => void;
}

/** Limits on waiting proposals; more are refused as overloaded. */
const defaultMaxProposals = 65_536;
const maxPendingBytes = 256 * 1024 * 1024;

/**
 * The proposals of this server on a log that several servers share. Each is sent to at most one leader at a time. Its
 * outcome is read from the log, where its origin names it: under any leader, however the connection to the leader
 * ended, and however late.
 *
 * A proposal that was sent to the leader of an epoch and is not in the log before the claim that ended that epoch was
 * never appended and never will be: an append of that leader succeeds only directly after the entries it knows.
 */
export class PendingProposals {
  readonly #run: number;
  readonly #timeoutMs: number;
  readonly #maxProposals: number;
  readonly #pending = new Map<number, PendingProposal>();
  #bytes = 0;
  #sequence = 0;

  /** `run` identifies this run of this server, below 2^32. */
  constructor(run: number, timeoutMs: number, maxProposals = defaultMaxProposals) {
    this.#run = run;
    this.#timeoutMs = timeoutMs;
    this.#maxProposals = maxProposals;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** The promise rejects with ProposalError. `raw` is the encoded request: see Sequencer.propose. */
  add(
    command: Command,
    raw: Buffer | undefined,
    nowMs: number,
  ): { proposal: PendingProposal; outcome: Promise<CommandResponse> } {
    if (this.#pending.size >= this.#maxProposals || this.#bytes >= maxPendingBytes) {
      throw new ProposalError('overloaded', 'too many requests wait for the log');
    }
    this.#sequence += 1;
    const sequence = this.#sequence;
    const encoded = { ...encodeCommand(command, raw), origin: { run: this.#run, sequence } };
    let proposal!: PendingProposal;
    const outcome = new Promise<CommandResponse>((resolve, reject) => {
      proposal = { command, encoded, expiresMs: nowMs + this.#timeoutMs, epoch: undefined, resolve, reject };
    });
    this.#pending.set(sequence, proposal);
    this.#bytes += encoded.payload.length;
    return { proposal, outcome };
  }

  /** The proposals that wait for a leader, oldest first. */
  waiting(): PendingProposal[] {
    return [...this.#pending.values()].filter(({ epoch }) => epoch === undefined);
  }

  /** Whether the proposal belongs to this run and its outcome is still unknown. */
  isAwaited(origin: Origin): boolean {
    return origin.run === this.#run && this.#pending.has(origin.sequence);
  }

  /** A command was applied with this outcome. Ignored if it belongs to another run. */
  applied(origin: Origin, response: CommandResponse): void {
    if (origin.run === this.#run) this.#take(origin.sequence)?.resolve(response);
  }

  /**
   * A claim was applied. Proposals that were sent to leaders of earlier epochs and are not in the log by now never will
   * be. They wait for a leader again.
   */
  claimed(epoch: number): void {
    for (const proposal of this.#pending.values()) {
      if (proposal.epoch !== undefined && proposal.epoch < epoch) proposal.epoch = undefined;
    }
  }

  /**
   * The applier skipped part of the log. A proposal that was sent to a leader may be in that part, and its outcome will
   * never be known. It is refused, and is not sent to a leader again.
   */
  skipped(): void {
    const unclear = new ProposalError(
      'skipped',
      'the outcome was in a part of the log that this server has passed over',
    );
    for (const [sequence, { epoch }] of this.#pending) if (epoch !== undefined) this.refuse(sequence, unclear);
  }

  /** The leader of `epoch` reported that it has not appended the proposal and will not. It waits for a leader again. */
  returned(sequence: number, epoch: number): void {
    const proposal = this.#pending.get(sequence);
    if (proposal?.epoch === epoch) proposal.epoch = undefined;
  }

  /** The proposal was not appended and will not be. */
  refuse(sequence: number, error: Error): void {
    this.#take(sequence)?.reject(error);
  }

  /** Refuses proposals whose time is up. `reason` says why there was no outcome, if that is known. */
  expire(nowMs: number, reason?: ClientReason): void {
    for (const [sequence, { expiresMs }] of this.#pending) {
      // All proposals have the same timeout, so the oldest come first.
      if (expiresMs > nowMs) return;
      this.refuse(sequence, new ProposalError('timeout', 'no outcome in time', reason));
    }
  }

  failAll(error: ProposalError): void {
    for (const sequence of [...this.#pending.keys()]) this.refuse(sequence, error);
  }

  #take(sequence: number): PendingProposal | undefined {
    const proposal = this.#pending.get(sequence);
    if (proposal === undefined) return undefined;
    this.#pending.delete(sequence);
    this.#bytes -= proposal.encoded.payload.length;
    return proposal;
  }
}
