/**
 * The shapes of keys, requests and answers inside the core.
 *
 * Keys and values are latin1 strings: one char per byte, so `<` on strings is the byte order of etcd. Revisions,
 * versions and counts are numbers: they are dense and ours, so they never pass 2^53. What a client sends in their
 * place is clamped to the doubles by the edge, which cannot change the outcome of a comparison with a number that
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

export interface RangeRequest {
  readonly key: string;
  /** '' reads one key; '\0' reads everything >= key; else the range [key, rangeEnd). */
  readonly rangeEnd: string;
  /** 0 or less: no limit. */
  readonly limit: number;
  /** 0 or less: the current revision. */
  readonly revision: number;
  /** 0 none, 1 ascending, 2 descending. */
  readonly sortOrder: number;
  /** 0 key, 1 version, 2 create, 3 mod, 4 value. */
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

/** result: 0 equal, 1 greater, 2 less, 3 not equal. target: 0 version, 1 create, 2 mod, 3 value, 4 lease. */
export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: string;
  readonly rangeEnd: string;
  /** The operand for targets 0, 1 and 2. */
  readonly number: number;
  /** The operand for target 3. */
  readonly value: string;
  /** The operand for target 4. */
  readonly lease: bigint;
}

export type RequestOp =
  | { readonly kind: 'range'; readonly range: RangeRequest }
  | { readonly kind: 'put'; readonly put: PutRequest }
  | { readonly kind: 'deleteRange'; readonly deleteRange: DeleteRangeRequest }
  | { readonly kind: 'txn'; readonly txn: TxnRequest }
  /** An op with no request in it: etcd refuses it with "key not found". */
  | { readonly kind: 'empty' };

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

/**
 * `revision` is what etcd writes into the header of each answer inside a transaction: the store's revision as that op
 * saw it, which counts the transaction's own writes so far. The header of a nested transaction's answer has no
 * revision (0).
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
