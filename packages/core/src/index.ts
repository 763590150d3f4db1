export type { AccessCheck } from './auth/access-check.ts';
export { AuthState } from './auth/auth-state.ts';
export type { AuthData } from './auth/auth-state.ts';
export { anonymous, invalidToken, rootName } from './auth/auth-types.ts';
export type { AuthChange, Permission, PermissionType, Requester, Role, User } from './auth/auth-types.ts';
export { coreError } from './core-error.ts';
export type { CoreError, CoreErrorCode } from './core-error.ts';
export { leaseOverheadBytes } from './lease/lease-collection.ts';
export type { Lease, LeaseChange } from './lease/lease-types.ts';
export type { History } from './mvcc/history.ts';
export type { KvHash } from './mvcc/key-value-store.ts';
export type {
  Compare,
  DeleteRangeRequest,
  DeleteRangeResult,
  KeyValue,
  KvEvent,
  PutRequest,
  PutResult,
  RangeRequest,
  RangeResult,
  RequestOp,
  ResponseOp,
  TxnRequest,
  TxnResult,
} from './mvcc/kv-types.ts';
export {
  checkCompact,
  checkDeleteRange,
  checkPut,
  checkRange,
  checkTxn,
  maxTotalTxnOps,
} from './mvcc/request-check.ts';
export type { RangeScan } from './mvcc/range-scan.ts';
export { SlicedSort } from './mvcc/sliced-sort.ts';
export { defaultTxnLimits } from './mvcc/txn-limits.ts';
export type { TxnLimits } from './mvcc/txn-limits.ts';
export { countOperations, hasInterval, isReadOnlyTxn } from './mvcc/txn-plan.ts';
export type { NewCluster } from './snapshot/new-cluster.ts';
export { SnapshotError } from './snapshot/snapshot-error.ts';
export type { SnapshotErrorCode } from './snapshot/snapshot-error.ts';
export { SnapshotReader } from './snapshot/snapshot-reader.ts';
export type { SnapshotWriter } from './snapshot/snapshot-writer.ts';
export type { Alarm, Member } from './state-machine/cluster-state.ts';
export type { AlarmKind, Command, CommandBody, CommandResponse, LeaseAt, LeaseDate } from './state-machine/command.ts';
export type { Applied, Entry } from './state-machine/entry.ts';
export { StateMachine } from './state-machine/state-machine.ts';
export { type Advanced, type Pulled, type WatchBatch, type WatchBudget, WatchHub } from './watch/watch-hub.ts';
export { type WatchRange, watchRange } from './watch/watch-range.ts';
export type { Watcher, WatchSpec } from './watch/watcher.ts';
