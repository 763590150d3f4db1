import type { Signal } from '../../time/signal.ts';

export interface GetOptions {
  readonly limit?: number;
  /** As the keys were at this revision. */
  readonly revision?: bigint;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  /** Read from one server alone, which may return an older state. Works without a leader. */
  readonly serializable?: boolean;
  readonly sortBy?: 'key' | 'version' | 'createRevision' | 'modRevision' | 'value';
  readonly order?: 'ascending' | 'descending';
  readonly signal?: Signal;
}

export interface PutOptions {
  readonly lease?: bigint;
  readonly prevKv?: boolean;
  /** The key stays attached to the lease that it has. */
  readonly keepLease?: boolean;
  /** The value stays as it is, and `value` must be empty. */
  readonly keepValue?: boolean;
}

export interface DeleteOptions {
  readonly prevKv?: boolean;
}
