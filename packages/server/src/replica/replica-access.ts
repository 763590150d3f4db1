import type { Command, CommandResponse, StateMachine } from '@tenure/core';
import type { Position } from '../engines/log-engine.ts';

/** What services need of a replica, on every kind of engine. */
export interface ReplicaAccess {
  readonly state: StateMachine;
  readonly position: Position;
  /** Resolves with the outcome, which is durable and applied here. Rejects with ProposalError. */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse>;
  /**
   * Resolves when the local state is no older than this call. Undefined where it always is: on an engine that only this
   * process appends to, every acknowledged write has been applied.
   */
  linearize(): Promise<void> | undefined;
}
