/** One refusal on the wire. */
export interface ErrorEntry {
  /** gRPC's status code. */
  readonly code: number;
  /** Clients compare this text first, and then the code. */
  readonly text: string;
}

/**
 * Every error of etcd's v3 API, with its exact text and code, under a stable name of ours.
 *
 * etcd's servers send TooManyRequests as Unknown by mistake; here it has the code of etcd's documentation. The text is
 * the same, and clients compare that.
 */
export const errorCatalogue = {
  // Unknown: etcd's documentation has FailedPrecondition, its servers send this.
  MemberNotEnoughStarted: { code: 2, text: 'etcdserver: re-configuration failed due to not enough started members' },

  // InvalidArgument
  EmptyKey: { code: 3, text: 'etcdserver: key is not provided' },
  KeyNotFound: { code: 3, text: 'etcdserver: key not found' },
  ValueProvided: { code: 3, text: 'etcdserver: value is provided' },
  LeaseProvided: { code: 3, text: 'etcdserver: lease is provided' },
  TooManyOps: { code: 3, text: 'etcdserver: too many operations in txn request' },
  DuplicateKey: { code: 3, text: 'etcdserver: duplicate key given in txn request' },
  InvalidClientApiVersion: { code: 3, text: 'etcdserver: invalid client api version' },
  InvalidSortOption: { code: 3, text: 'etcdserver: invalid sort option' },
  MemberBadUrls: { code: 3, text: 'etcdserver: given member URLs are invalid' },
  RequestTooLarge: { code: 3, text: 'etcdserver: request is too large' },
  UserEmpty: { code: 3, text: 'etcdserver: user name is empty' },
  RoleEmpty: { code: 3, text: 'etcdserver: role name is empty' },
  AuthFailed: { code: 3, text: 'etcdserver: authentication failed, invalid user ID or password' },
  PermissionNotGiven: { code: 3, text: 'etcdserver: permission not given' },
  InvalidAuthManagement: { code: 3, text: 'etcdserver: invalid auth management' },
  AuthOldRevision: { code: 3, text: 'etcdserver: revision of auth store is old' },
  WrongDowngradeVersionFormat: { code: 3, text: 'etcdserver: wrong downgrade target version format' },
  InvalidDowngradeTargetVersion: { code: 3, text: 'etcdserver: invalid downgrade target version' },

  // OutOfRange
  Compacted: { code: 11, text: 'etcdserver: mvcc: required revision has been compacted' },
  FutureRevision: { code: 11, text: 'etcdserver: mvcc: required revision is a future revision' },
  LeaseTtlTooLarge: { code: 11, text: 'etcdserver: too large lease TTL' },

  // ResourceExhausted
  NoSpace: { code: 8, text: 'etcdserver: mvcc: database space exceeded' },
  TooManyRequests: { code: 8, text: 'etcdserver: too many requests' },

  // NotFound
  LeaseNotFound: { code: 5, text: 'etcdserver: requested lease not found' },
  MemberNotFound: { code: 5, text: 'etcdserver: member not found' },

  // FailedPrecondition
  LeaseExists: { code: 9, text: 'etcdserver: lease already exists' },
  MemberExists: { code: 9, text: 'etcdserver: member ID already exist' },
  PeerUrlExists: { code: 9, text: 'etcdserver: Peer URLs already exists' },
  MemberNotLearner: { code: 9, text: 'etcdserver: can only promote a learner member' },
  LearnerNotReady: { code: 9, text: 'etcdserver: can only promote a learner member which is in sync with leader' },
  TooManyLearners: { code: 9, text: 'etcdserver: too many learner members in cluster' },
  ClusterIdMismatch: { code: 9, text: 'etcdserver: cluster ID mismatch' },
  RootUserNotExist: { code: 9, text: 'etcdserver: root user does not exist' },
  RootRoleNotGranted: { code: 9, text: 'etcdserver: root user does not have root role' },
  UserAlreadyExists: { code: 9, text: 'etcdserver: user name already exists' },
  UserNotFound: { code: 9, text: 'etcdserver: user name not found' },
  RoleAlreadyExists: { code: 9, text: 'etcdserver: role name already exists' },
  RoleNotFound: { code: 9, text: 'etcdserver: role name not found' },
  RoleNotGranted: { code: 9, text: 'etcdserver: role is not granted to the user' },
  PermissionNotGranted: { code: 9, text: 'etcdserver: permission is not granted to the role' },
  AuthNotEnabled: { code: 9, text: 'etcdserver: authentication is not enabled' },
  NotLeader: { code: 9, text: 'etcdserver: not leader' },
  NotCapable: { code: 9, text: 'etcdserver: not capable' },
  NotSupportedForLearner: { code: 9, text: 'etcdserver: rpc not supported for learner' },
  BadLeaderTransferee: { code: 9, text: 'etcdserver: bad leader transferee' },
  ClusterVersionUnavailable: { code: 9, text: 'etcdserver: cluster version not found during downgrade' },
  DowngradeInProcess: { code: 9, text: 'etcdserver: cluster has a downgrade job in progress' },
  UnknownMethod: { code: 2, text: 'etcdserver: unknown method' },
  NoInflightDowngrade: { code: 9, text: 'etcdserver: no inflight downgrade job' },

  // Canceled
  WatchCanceled: { code: 1, text: 'etcdserver: watch canceled' },
  RequestCanceled: { code: 1, text: 'etcdserver: request canceled' },

  // PermissionDenied
  PermissionDenied: { code: 7, text: 'etcdserver: permission denied' },

  // Unauthenticated
  InvalidAuthToken: { code: 16, text: 'etcdserver: invalid auth token' },

  // Unavailable
  NoLeader: { code: 14, text: 'etcdserver: no leader' },
  LeaderChanged: { code: 14, text: 'etcdserver: leader changed' },
  Stopped: { code: 14, text: 'etcdserver: server stopped' },
  Timeout: { code: 14, text: 'etcdserver: request timed out' },
  TimeoutDueToLeaderFailure: {
    code: 14,
    text: 'etcdserver: request timed out, possibly due to previous leader failure',
  },
  TimeoutDueToConnectionLost: { code: 14, text: 'etcdserver: request timed out, possibly due to connection lost' },
  TimeoutWaitAppliedIndex: {
    code: 14,
    text: 'etcdserver: request timed out, waiting for the applied index took too long',
  },
  Unhealthy: { code: 14, text: 'etcdserver: unhealthy cluster' },

  // DataLoss
  Corrupt: { code: 15, text: 'etcdserver: corrupt cluster' },

  // DeadlineExceeded
  DeadlineExceeded: { code: 4, text: 'etcdserver: context deadline exceeded' },

  // A command was appended in an epoch that had ended when it was applied: it changed nothing and may be sent again.
  StaleEpoch: { code: 14, text: 'etcdserver: leader changed' },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

export type ErrorName = keyof typeof errorCatalogue;
