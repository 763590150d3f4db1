import type { Applied, Entry } from '@tenure/core';
import type { Position } from '../engines/log-engine.ts';
import type { AppendPermit } from './append-permit.ts';

/** The outcome of a claim. `unclear`: the engine could not tell; the log will. */
export type ClaimOutcome = 'leads' | 'lost' | 'unclear';

/**
 * What a replica reports to the server, in order and synchronously. `applied` and `loaded` are reported before the
 * proposals and reads that wait for them are answered.
 */
export type ReplicaFact =
  /** An entry was applied, starting at `beganMs`. `leads`: this server appended it in its own epoch. */
  | {
      readonly kind: 'applied';
      readonly entry: Entry;
      readonly applied: Applied;
      readonly beganMs: number;
      readonly leads: boolean;
    }
  /** The append with this permit returned in the same epoch. Its entry is applied next. */
  | { readonly kind: 'appended'; readonly permit: AppendPermit }
  /**
   * The log was trimmed beyond the applied position. The state, still the same object, now holds a snapshot's content.
   */
  | { readonly kind: 'loaded'; readonly position: Position }
  /** This server stopped leading. */
  | { readonly kind: 'deposed' }
  /** No snapshot was written and the log was not trimmed. The replica retries when the next snapshot is due. */
  | { readonly kind: 'snapshotPutOff'; readonly reason: Error }
  /** An append of this server failed for another reason than an append by another server. */
  | { readonly kind: 'appendFailed'; readonly error: Error }
  /** The server must stop. The message says what an operator can do. */
  | { readonly kind: 'failed'; readonly error: Error };
