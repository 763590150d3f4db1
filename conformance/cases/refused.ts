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
  leaseExists: refusal(Code.failedPrecondition, 'lease already exists'),
} as const;
