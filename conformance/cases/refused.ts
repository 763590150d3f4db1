import { Code, type CallStatus } from '../client/refusal.ts';

const refusal = (code: number, details: string): CallStatus => ({ code, details: `etcdserver: ${details}` });

/** etcd's refusals, code and exact text: clients compare the text. */
export const refused = {
  emptyKey: refusal(Code.invalidArgument, 'key is not provided'),
  keyNotFound: refusal(Code.invalidArgument, 'key not found'),
  valueProvided: refusal(Code.invalidArgument, 'value is provided'),
  leaseProvided: refusal(Code.invalidArgument, 'lease is provided'),
  tooManyOps: refusal(Code.invalidArgument, 'too many operations in txn request'),
  duplicateKey: refusal(Code.invalidArgument, 'duplicate key given in txn request'),
  invalidSort: refusal(Code.invalidArgument, 'invalid sort option'),
  requestTooLarge: refusal(Code.invalidArgument, 'request is too large'),
  compacted: refusal(Code.outOfRange, 'mvcc: required revision has been compacted'),
  futureRevision: refusal(Code.outOfRange, 'mvcc: required revision is a future revision'),
  ttlTooLarge: refusal(Code.outOfRange, 'too large lease TTL'),
  noSpace: refusal(Code.resourceExhausted, 'mvcc: database space exceeded'),
  leaseNotFound: refusal(Code.notFound, 'requested lease not found'),
  memberNotFound: refusal(Code.notFound, 'member not found'),
  badMemberUrls: refusal(Code.invalidArgument, 'given member URLs are invalid'),
  noUser: refusal(Code.invalidArgument, 'user name is empty'),
  invalidToken: refusal(Code.unauthenticated, 'invalid auth token'),
  permissionDenied: refusal(Code.permissionDenied, 'permission denied'),
  notLoggedIn: refusal(Code.invalidArgument, 'authentication failed, invalid user ID or password'),
  invalidManagement: refusal(Code.invalidArgument, 'invalid auth management'),
  oldAuthRevision: refusal(Code.invalidArgument, 'revision of auth store is old'),
  permissionNotGiven: refusal(Code.invalidArgument, 'permission not given'),
  noRoleName: refusal(Code.invalidArgument, 'role name is empty'),
  authNotEnabled: refusal(Code.failedPrecondition, 'authentication is not enabled'),
  noRootUser: refusal(Code.failedPrecondition, 'root user does not exist'),
  rootWithoutRole: refusal(Code.failedPrecondition, 'root user does not have root role'),
  userExists: refusal(Code.failedPrecondition, 'user name already exists'),
  userNotFound: refusal(Code.failedPrecondition, 'user name not found'),
  roleExists: refusal(Code.failedPrecondition, 'role name already exists'),
  roleNotFound: refusal(Code.failedPrecondition, 'role name not found'),
  roleNotGranted: refusal(Code.failedPrecondition, 'role is not granted to the user'),
  permissionNotGranted: refusal(Code.failedPrecondition, 'permission is not granted to the role'),
  // Texts without etcd's prefix: its errors that have no code of their own.
  noPasswordUser: {
    code: Code.unknown,
    details: 'auth: authentication failed, password was given for no password user',
  },
  passwordTooLong: { code: Code.unknown, details: 'bcrypt: password length exceeds 72 bytes' },
  leaseExists: refusal(Code.failedPrecondition, 'lease already exists'),
} as const;
