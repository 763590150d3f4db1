/** Names of what the core refuses. `server/grpc` gives each its etcd text and code; the names are stable. */
export type CoreErrorCode =
  | 'EmptyKey'
  | 'KeyNotFound'
  | 'ValueProvided'
  | 'LeaseProvided'
  | 'TooManyOps'
  | 'DuplicateKey'
  | 'RequestTooLarge'
  | 'InvalidSortOption'
  | 'Compacted'
  | 'FutureRevision'
  | 'LeaseNotFound'
  | 'LeaseExists'
  | 'LeaseTtlTooLarge'
  | 'MemberExists'
  | 'NoSpace'
  | 'StaleEpoch'
  | 'Corrupt';

export interface CoreError {
  readonly kind: 'error';
  readonly code: CoreErrorCode;
}

/**
 * The answer that refuses a request. It is a value, not an exception: refusing is part of the state machine's
 * function.
 */
export function coreError(code: CoreErrorCode): CoreError {
  return { kind: 'error', code };
}
