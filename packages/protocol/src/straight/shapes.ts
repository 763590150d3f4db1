/*
 * What the straight-line codecs read and write. Keys and values are latin1 strings, one char per byte; revisions,
 * versions and counts are numbers, lease ids bigints. The shapes are those of the core's requests and answers, declared
 * anew since the protocol knows nothing of the core: structural typing holds them equal where a server hands one to the
 * other.
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
  readonly rangeEnd: string;
  readonly limit: number;
  readonly revision: number;
  /** RangeRequest.SortOrder; any int32 may come. */
  readonly sortOrder: number;
  /** RangeRequest.SortTarget; any int32 may come. */
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
  /** Compare.CompareResult; any int32 may come. */
  readonly result: number;
  /** Compare.CompareTarget; any int32 may come. */
  readonly target: number;
  readonly key: string;
  readonly rangeEnd: string;
  /** The operand for the targets version, create and mod, else 0. */
  readonly number: number;
  /** The operand for the target value, else ''. */
  readonly value: string;
  /** The operand for the target lease, else 0n. */
  readonly lease: bigint;
}

export type RequestOp =
  | { readonly kind: 'range'; readonly range: RangeRequest }
  | { readonly kind: 'put'; readonly put: PutRequest }
  | { readonly kind: 'deleteRange'; readonly deleteRange: DeleteRangeRequest }
  | { readonly kind: 'txn'; readonly txn: TxnRequest }
  /** No request in it. */
  | { readonly kind: 'empty' };

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

/**
 * `revision` goes into the answer's own header: the store's revision as that op saw it, its transaction's changes so
 * far included. The header of a transaction in a transaction is empty.
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

export interface KvEvent {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
  readonly prevKv: KeyValue | undefined;
}

/** The same shape while it is being read. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
