import type { RequestOp } from './kv-types.ts';

/**
 * A transaction whose comparisons are evaluated, nested ones too, on the state before its first write. The plan either
 * runs as a whole or, if `check` finds a fault, not at all.
 */
export interface PlannedTxn {
  readonly succeeded: boolean;
  readonly ops: readonly PlannedOp[];
}

export type PlannedOp =
  | Exclude<RequestOp, { readonly kind: 'txn' }>
  | { readonly kind: 'txn'; readonly plan: PlannedTxn };
