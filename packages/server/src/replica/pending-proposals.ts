import type { Command, CommandResponse } from '@tenure/core';
import { encodeCommand } from './command-codec.ts';
import type { EncodedCommand, Origin } from './entry-codec.ts';
import type { ClientReason } from './client-reason.ts';
import { ProposalError } from './proposal-error.ts';

export interface PendingProposal {
  readonly command: Command;
  readonly encoded: EncodedCommand & { readonly origin: Origin };
  readonly expiresMs: number;
  /** The epoch to whose leader it was handed; undefined while it waits for a leader. */
  epoch: number | undefined;
  readonly resolve: (response: CommandResponse) => void;
  readonly reject: (error: Error) => void;
}

/** What may wait for an outcome; more is refused as overloaded. */
const maxPendingProposals = 65_536;
const maxPendingBytes = 256 * 1024 * 1024;

/**
 * The proposals of this server on a log that several servers share. Each is handed to at most one leader, and its
 * outcome is read from the log, where its origin names it: whoever leads, however the connection to the leader ended,
 * and however late.
 *
 * A proposal that was handed to the leader of an epoch and is not in the log before the claim that ended that epoch
 * was never appended and never will be: a leader's append is conditional on nothing having come in between.
 */
export class PendingProposals {
  readonly #run: number;
  readonly #timeoutMs: number;
  readonly #pending = new Map<number, PendingProposal>();
  #bytes = 0;
  #sequence = 0;

  /** `run` names this run of this server, below 2^32. */
  constructor(run: number, timeoutMs: number) {
    this.#run = run;
    this.#timeoutMs = timeoutMs;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** The promise rejects with ProposalError. `raw` is the request as it came in: see Sequencer.propose. */
  add(
    command: Command,
    raw: Buffer | undefined,
    nowMs: number,
  ): { proposal: PendingProposal; outcome: Promise<CommandResponse> } {
    if (this.#pending.size >= maxPendingProposals || this.#bytes >= maxPendingBytes) {
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

  /** Those that wait for a leader, the oldest first. */
  waiting(): PendingProposal[] {
    return [...this.#pending.values()].filter(({ epoch }) => epoch === undefined);
  }

  /** Whether the proposal is one of this run, and nobody has told its outcome yet. */
  isAwaited(origin: Origin): boolean {
    return origin.run === this.#run && this.#pending.has(origin.sequence);
  }

  /** A command was applied, with this outcome. Nothing happens if it is not one of this run. */
  applied(origin: Origin, response: CommandResponse): void {
    if (origin.run === this.#run) this.#take(origin.sequence)?.resolve(response);
  }

  /**
   * A claim was applied: what was handed to the leaders of earlier epochs, and is not in the log by now, never will
   * be, and waits for a leader again.
   */
  claimed(epoch: number): void {
    for (const proposal of this.#pending.values()) {
      if (proposal.epoch !== undefined && proposal.epoch < epoch) proposal.epoch = undefined;
    }
  }

  /**
   * Part of the log was passed over. What was handed to a leader may be in that part, and nobody will ever tell: its
   * proposer learns that there is no outcome, and it is not handed to anybody again.
   */
  skipped(): void {
    const unclear = new ProposalError(
      'timeout',
      'the outcome was in a part of the log that this server has passed over',
    );
    for (const [sequence, { epoch }] of this.#pending) if (epoch !== undefined) this.refuse(sequence, unclear);
  }

  /** The leader of `epoch` said that it has not appended it and will not: it waits for a leader again. */
  returned(sequence: number, epoch: number): void {
    const proposal = this.#pending.get(sequence);
    if (proposal?.epoch === epoch) proposal.epoch = undefined;
  }

  /** It was not appended and will not be. */
  refuse(sequence: number, error: Error): void {
    this.#take(sequence)?.reject(error);
  }

  /** Gives up on what has waited for too long; `reason` says why, if it is known. */
  expire(nowMs: number, reason?: ClientReason): void {
    for (const [sequence, { expiresMs }] of this.#pending) {
      // All wait equally long, so the oldest are in front.
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
