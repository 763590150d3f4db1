import type { Command, CommandResponse, StateMachine } from '@tenure/core';
import type { Position } from '../engines/log-engine.ts';

/** What services need of a replica, on whichever kind of engine. */
export interface ReplicaAccess {
  readonly state: StateMachine;
  readonly position: Position;
  /** Resolves with the outcome, by then durable and applied here. Rejects with ProposalError. */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse>;
  /**
   * Resolves when the state here is no older than this call. Undefined at once where it always is: on an engine that
   * only this process appends to, what was acknowledged has been applied.
   */
  linearize(): Promise<void> | undefined;
}
