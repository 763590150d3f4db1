import type { RequestOp } from './kv-types.ts';

/**
 * A transaction whose comparisons have been made, nested ones too: all on the state before its first write. What is
 * planned either runs as a whole or, if `check` finds a fault, not at all.
 */
export interface PlannedTxn {
  readonly succeeded: boolean;
  readonly ops: readonly PlannedOp[];
}

export type PlannedOp =
  | Exclude<RequestOp, { readonly kind: 'txn' }>
  | { readonly kind: 'txn'; readonly plan: PlannedTxn };
