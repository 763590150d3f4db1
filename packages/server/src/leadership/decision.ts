import type { Command, CommandResponse } from '@tenure/core';
import type { LessorCommand, LessorDecision, PollPurpose } from '../leases/lessor.ts';
import type { ClaimOutcome, ReplicaFact } from '../replica/replica-fact.ts';

/** The facts that the leadership is told, in order: by the replica, and about the outcome of its own decisions. */
export type Fact =
  | Extract<ReplicaFact, { kind: 'applied' | 'appended' | 'loaded' | 'deposed' }>
  | { readonly kind: 'claimEnded'; readonly outcome: ClaimOutcome | Error }
  | {
      readonly kind: 'proposalEnded';
      readonly epoch: number;
      readonly command: ProposedCommand;
      readonly outcome: CommandResponse | Error;
    }
  | { readonly kind: 'polled'; readonly epoch: number; readonly purpose: PollPurpose }
  | { readonly kind: 'timePassed' };

/** What a leader proposes by itself. */
export type ProposedCommand = LessorCommand | Extract<Command, { kind: 'resign' }>;

/** What the leadership decides, in the order in which it must be carried out. */
export type Decision =
  | LessorDecision
  /** Append a claim directly after the applied position, then report `claimEnded`. */
  | { readonly kind: 'claim'; readonly leader: string; readonly leaderLeaseMs: number }
  /** Append an entry: the waiting commands, or an empty one. */
  | { readonly kind: 'heartbeat' }
  /** As `propose` of the lessor: hands leadership to another member. */
  | { readonly kind: 'propose'; readonly epoch: number; readonly command: ProposedCommand }
  /** Append nothing more in this epoch. Ignored if another epoch has begun. */
  | { readonly kind: 'stepDown'; readonly epoch: number }
  /** Tell the rest of the server that this server leads from now on, or no longer leads. */
  | { readonly kind: 'changed'; readonly leads: boolean }
  /** The server must stop, for this reason. */
  | { readonly kind: 'fail'; readonly error: Error };
