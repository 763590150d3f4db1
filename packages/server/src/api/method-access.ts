/**
 * Who may call a method while authentication is enabled.
 *
 * - `anyone`: also a client without an identity.
 * - `keys`: by the keys that the request names. Commands are checked when they are applied, reads and watches where
 *   they read. As in etcd, a token of a past auth revision is refused.
 * - `named`: by what the request names, a lease, a user or a role, or by what it does: its service or apply checks it.
 * - `user`: every user.
 * - `root`: users with the role root.
 */
export type MethodAccess = 'anyone' | 'keys' | 'named' | 'user' | 'root';

/**
 * The access to each method of the API, by its path. The server does not start with a method that is not in this table:
 * see AccessGuard.
 */
export const methodAccess: Readonly<Record<string, MethodAccess>> = {
  '/etcdserverpb.KV/Range': 'keys',
  '/etcdserverpb.KV/Put': 'keys',
  '/etcdserverpb.KV/DeleteRange': 'keys',
  '/etcdserverpb.KV/Txn': 'keys',
  '/etcdserverpb.KV/Compact': 'root',
  '/etcdserverpb.Watch/Watch': 'keys',
  '/etcdserverpb.Lease/LeaseGrant': 'user',
  '/etcdserverpb.Lease/LeaseRevoke': 'named',
  '/etcdserverpb.Lease/LeaseKeepAlive': 'named',
  '/etcdserverpb.Lease/LeaseTimeToLive': 'named',
  '/etcdserverpb.Lease/LeaseLeases': 'named',
  '/etcdserverpb.Cluster/MemberAdd': 'root',
  '/etcdserverpb.Cluster/MemberRemove': 'root',
  '/etcdserverpb.Cluster/MemberUpdate': 'root',
  '/etcdserverpb.Cluster/MemberList': 'user',
  '/etcdserverpb.Cluster/MemberPromote': 'root',
  // To list alarms takes a user; to raise or disarm one, root.
  '/etcdserverpb.Maintenance/Alarm': 'named',
  '/etcdserverpb.Maintenance/Status': 'user',
  '/etcdserverpb.Maintenance/Defragment': 'root',
  '/etcdserverpb.Maintenance/Hash': 'root',
  '/etcdserverpb.Maintenance/HashKV': 'root',
  '/etcdserverpb.Maintenance/Snapshot': 'root',
  '/etcdserverpb.Maintenance/MoveLeader': 'root',
  '/etcdserverpb.Maintenance/Downgrade': 'root',
  '/etcdserverpb.Auth/AuthEnable': 'root',
  '/etcdserverpb.Auth/AuthDisable': 'root',
  '/etcdserverpb.Auth/AuthStatus': 'root',
  '/etcdserverpb.Auth/Authenticate': 'anyone',
  '/etcdserverpb.Auth/UserAdd': 'root',
  '/etcdserverpb.Auth/UserGet': 'named',
  '/etcdserverpb.Auth/UserList': 'root',
  '/etcdserverpb.Auth/UserDelete': 'root',
  '/etcdserverpb.Auth/UserChangePassword': 'root',
  '/etcdserverpb.Auth/UserGrantRole': 'root',
  '/etcdserverpb.Auth/UserRevokeRole': 'root',
  '/etcdserverpb.Auth/RoleAdd': 'root',
  '/etcdserverpb.Auth/RoleGet': 'named',
  '/etcdserverpb.Auth/RoleList': 'root',
  '/etcdserverpb.Auth/RoleDelete': 'root',
  '/etcdserverpb.Auth/RoleGrantPermission': 'root',
  '/etcdserverpb.Auth/RoleRevokePermission': 'root',
  '/v3lockpb.Lock/Lock': 'keys',
  '/v3lockpb.Lock/Unlock': 'keys',
  '/v3electionpb.Election/Campaign': 'keys',
  '/v3electionpb.Election/Proclaim': 'keys',
  '/v3electionpb.Election/Leader': 'keys',
  '/v3electionpb.Election/Observe': 'keys',
  '/v3electionpb.Election/Resign': 'keys',
  '/grpc.health.v1.Health/Check': 'anyone',
  '/grpc.health.v1.Health/Watch': 'anyone',
};
