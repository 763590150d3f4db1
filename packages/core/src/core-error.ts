/** Names of the core's refusals. The server maps each to etcd's text and gRPC code. The names are stable. */
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
  | 'Corrupt'
  | 'UserEmpty'
  | 'UserNotFound'
  | 'UserAlreadyExists'
  | 'RoleEmpty'
  | 'RoleNotFound'
  | 'RoleAlreadyExists'
  | 'RoleNotGranted'
  | 'PermissionNotGranted'
  | 'InvalidAuthManagement'
  | 'RootUserNotExist'
  | 'RootRoleNotGranted'
  | 'AuthNotEnabled'
  | 'AuthOldRevision'
  | 'InvalidAuthToken'
  | 'PermissionDenied';

export interface CoreError {
  readonly kind: 'error';
  readonly code: CoreErrorCode;
}

/** The response of a refused request. It is a value, not an exception: a refusal is a result of the state machine. */
export function coreError(code: CoreErrorCode): CoreError {
  return { kind: 'error', code };
}
