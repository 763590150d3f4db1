import type { Operation } from './operation.ts';

/** Ids are not used twice in a history. */
export type LeaseInput =
  | { readonly kind: 'grant'; readonly id: bigint; readonly ttlMs: number }
  | { readonly kind: 'renew'; readonly id: bigint }
  | { readonly kind: 'revoke'; readonly id: bigint }
  | { readonly kind: 'timeToLive'; readonly id: bigint }
  /** A put that attaches a key. */
  | { readonly kind: 'attach'; readonly id: bigint; readonly key: string }
  /** A watcher saw that one of its keys was deleted with it. */
  | { readonly kind: 'sawEnd'; readonly id: bigint };

export interface LeaseOutput {
  /** Whether the lease existed for this call. */
  readonly alive: boolean;
}

export type LeaseOperation = Operation<LeaseInput, LeaseOutput>;
