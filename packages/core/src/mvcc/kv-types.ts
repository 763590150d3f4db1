/**
 * The types of keys, requests and responses inside the core.
 *
 * Keys and values are latin1 strings: one char per byte, so `<` on strings is the byte order of etcd. Revisions,
 * versions and counts are numbers: the server assigns them densely, so they never exceed 2^53. The API layer clamps
 * such numbers in a client's request to doubles, which cannot change the result of a comparison with a number that
 * small. Lease ids are bigint: clients choose them, and int64 does not fit a double.
 */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  /** 0n when no lease is attached. */
  readonly lease: bigint;
}

/**
 * The wire's numbers. A request may hold any int32: a value not listed here is refused, or treated as etcd treats it.
 */
export const SortOrder = { none: 0, ascend: 1, descend: 2 } as const;
export const SortTarget = { key: 0, version: 1, create: 2, mod: 3, value: 4 } as const;
export const CompareResult = { equal: 0, greater: 1, less: 2, notEqual: 3 } as const;
export const CompareTarget = { version: 0, create: 1, mod: 2, value: 3, lease: 4 } as const;

export interface RangeRequest {
  readonly key: string;
  /** '' reads one key; '\0' reads every key >= key; otherwise the range [key, rangeEnd). */
  readonly rangeEnd: string;
  /** 0 or less: no limit. */
  readonly limit: number;
  /** 0 or less: the current revision. */
  readonly revision: number;
  /** A `SortOrder`. */
  readonly sortOrder: number;
  /** A `SortTarget`. */
  readonly sortTarget: number;
  readonly serializable: boolean;
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
  readonly minModRevision: number;
  readonly maxModRevision: number;
  readonly minCreateRevision: number;
  readonly maxCreateRevision: number;
}

export interface RangeResult {
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: number;
}

export interface PutRequest {
  readonly key: string;
  readonly value: string;
  readonly lease: bigint;
  readonly prevKv: boolean;
  readonly ignoreValue: boolean;
  readonly ignoreLease: boolean;
}

export interface PutResult {
  readonly prevKv: KeyValue | undefined;
}

export interface DeleteRangeRequest {
  readonly key: string;
  readonly rangeEnd: string;
  readonly prevKv: boolean;
}

export interface DeleteRangeResult {
  readonly deleted: number;
  readonly prevKvs: readonly KeyValue[];
}

export interface Compare {
  /** A `CompareResult`. */
  readonly result: number;
  /** A `CompareTarget`. */
  readonly target: number;
  readonly key: string;
  readonly rangeEnd: string;
  /** The operand for `version`, `create` and `mod`. */
  readonly number: number;
  /** The operand for `value`. */
  readonly value: string;
  /** The operand for `lease`. */
  readonly lease: bigint;
}

export type RequestOp =
  | { readonly kind: 'range'; readonly range: RangeRequest }
  | { readonly kind: 'put'; readonly put: PutRequest }
  | { readonly kind: 'deleteRange'; readonly deleteRange: DeleteRangeRequest }
  | { readonly kind: 'txn'; readonly txn: TxnRequest }
  /** An op without a request: etcd refuses it with "key not found". */
  | { readonly kind: 'empty' };

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

/**
 * `revision` is the revision that etcd writes into the header of each response inside a transaction: the store's
 * revision as that op saw it, which counts the writes of the transaction so far. The header of a nested transaction's
 * response has no revision (0).
 */
export type ResponseOp =
  | { readonly kind: 'range'; readonly revision: number; readonly range: RangeResult }
  | { readonly kind: 'put'; readonly revision: number; readonly put: PutResult }
  | { readonly kind: 'deleteRange'; readonly revision: number; readonly deleteRange: DeleteRangeResult }
  | { readonly kind: 'txn'; readonly revision: 0; readonly txn: TxnResult };

export interface TxnResult {
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

/**
 * One change of one key. A delete carries only key and modRevision in `kv` (value '', lease 0n, version 0,
 * createRevision 0).
 */
export interface KvEvent {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
  /** The key as it was at modRevision - 1; undefined when it did not exist. */
  readonly prevKv: KeyValue | undefined;
}
