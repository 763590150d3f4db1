import { etcdserverpb, type RpcMethod, rpcMethods } from '@tenure/protocol';
import { checkMessage, DecodeError, withNames } from '@tenure/codec';
import type { AuthService } from './auth-service.ts';
import type { ClusterService } from './cluster-service.ts';
import type { HealthService } from './health-service.ts';
import type { KvService } from './kv-service.ts';
import type { LeaseService } from './lease-service.ts';
import type { MaintenanceService } from './maintenance-service.ts';
import type { MembershipService } from './membership-service.ts';
import type { RequestedBy } from './requested.ts';
import { statusOf, streamStatusOf } from './status-of.ts';
import type {
  Call,
  DuplexCall,
  GrpcRoutes,
  MethodHandler,
  ServerStreamHandler,
  UnaryHandler,
} from '../transport/transport.ts';
import type { Reply } from '@tenure/grpc-server';

export interface Services {
  readonly kv: KvService;
  readonly lease: LeaseService;
  readonly watch: { handle(call: DuplexCall): void };
  readonly maintenance: MaintenanceService;
  readonly cluster: ClusterService;
  readonly membership: MembershipService;
  readonly auth: AuthService;
  readonly health: HealthService;
  readonly lock: Readonly<Record<'lock' | 'unlock', UnaryHandler>>;
  readonly election: Readonly<Record<'campaign' | 'proclaim' | 'leader' | 'resign', UnaryHandler>> & {
    readonly observe: ServerStreamHandler;
  };
}

const timeToLive = '/etcdserverpb.Lease/LeaseTimeToLive';
const leases = '/etcdserverpb.Lease/LeaseLeases';
/** The requests that other servers send to the leader. */
export const leaderOnlyPaths: ReadonlySet<string> = new Set([timeToLive, leases]);

/** Answers a call that only the leader can: locally on the leader, by forwarding elsewhere. */
export type LeaderOnly = (
  path: string,
  request: Buffer,
  call: RequestedBy,
  local: () => Reply | Promise<Reply>,
) => Reply | Promise<Reply>;

/** Every path of etcd's API, and its service. */
export function createRoutes(
  services: Services,
  leaderOnly: LeaderOnly = (_path, _request, _call, local) => local(),
): GrpcRoutes {
  const { kv, lease, watch, maintenance, cluster, membership, auth, health, lock, election } = services;
  const routes = new Map<string, MethodHandler>([
    unary('/etcdserverpb.KV/Range', (request, call) => kv.range(request, call)),
    unary('/etcdserverpb.KV/Put', (request, call) => kv.put(request, call)),
    unary('/etcdserverpb.KV/DeleteRange', (request, call) => kv.deleteRange(request, call)),
    unary('/etcdserverpb.KV/Txn', (request, call) => kv.txn(request, call)),
    unary('/etcdserverpb.KV/Compact', (request, call) => kv.compact(request, call)),
    ['/etcdserverpb.Watch/Watch', { kind: 'bidi', handle: (call) => watch.handle(call) }],
    unary('/etcdserverpb.Lease/LeaseGrant', (request, call) => lease.grant(request, call)),
    unary('/etcdserverpb.Lease/LeaseRevoke', (request, call) => lease.revoke(request, call)),
    ['/etcdserverpb.Lease/LeaseKeepAlive', { kind: 'bidi', handle: (call) => lease.keepAlive(call) }],
    unary(timeToLive, (request, call) => leaderOnly(timeToLive, request, call, () => lease.timeToLive(request, call))),
    unary(leases, (request, call) => leaderOnly(leases, request, call, () => lease.leases(request, call))),
    unread('/etcdserverpb.Cluster/MemberList', () => cluster.memberList()),
    unary('/etcdserverpb.Cluster/MemberAdd', (request) => membership.add(request)),
    unary('/etcdserverpb.Cluster/MemberRemove', (request, call) => membership.remove(request, call)),
    unary('/etcdserverpb.Cluster/MemberUpdate', (request) => membership.update(request)),
    unary('/etcdserverpb.Cluster/MemberPromote', (request) => membership.promote(request)),
    unary('/etcdserverpb.Maintenance/Alarm', (request, call) => maintenance.alarm(request, call)),
    unread('/etcdserverpb.Maintenance/Status', () => maintenance.status()),
    unread('/etcdserverpb.Maintenance/Defragment', () => maintenance.defragment()),
    unary('/etcdserverpb.Maintenance/Downgrade', (request) => maintenance.downgrade(request)),
    unread('/etcdserverpb.Maintenance/Hash', (call) => maintenance.hash(call)),
    unary('/etcdserverpb.Maintenance/HashKV', (request) => maintenance.hashKv(request)),
    unary('/etcdserverpb.Maintenance/MoveLeader', (request) => membership.moveLeader(request)),
    serverStream('/etcdserverpb.Maintenance/Snapshot', (request, call, send) => {
      checkMessage(etcdserverpb.SnapshotRequestSchema, request);
      return maintenance.snapshot(call, send);
    }),
    ...authRoutes(auth),
    unary('/v3lockpb.Lock/Lock', (request, call) => lock.lock(request, call)),
    unary('/v3lockpb.Lock/Unlock', (request, call) => lock.unlock(request, call)),
    unary('/v3electionpb.Election/Campaign', (request, call) => election.campaign(request, call)),
    unary('/v3electionpb.Election/Proclaim', (request, call) => election.proclaim(request, call)),
    unary('/v3electionpb.Election/Leader', (request, call) => election.leader(request, call)),
    serverStream('/v3electionpb.Election/Observe', (request, call, send) => election.observe(request, call, send)),
    unary('/v3electionpb.Election/Resign', (request, call) => election.resign(request, call)),
    unary('/grpc.health.v1.Health/Check', (request) => health.check(request)),
    serverStream('/grpc.health.v1.Health/Watch', (request, call, send) => health.watch(request, call, send)),
  ]);
  for (const path of rpcMethods.keys()) if (!routes.has(path)) throw new Error(`no service answers ${path}`);
  return routes;
}

function authRoutes(auth: AuthService): readonly Route[] {
  return [
    unread('/etcdserverpb.Auth/AuthEnable', (call) => auth.enable(call)),
    unread('/etcdserverpb.Auth/AuthDisable', (call) => auth.disable(call)),
    unread('/etcdserverpb.Auth/AuthStatus', (call) => auth.status(call)),
    unary('/etcdserverpb.Auth/Authenticate', (request, call) => auth.authenticate(request, call)),
    unary('/etcdserverpb.Auth/UserAdd', (request, call) => auth.userAdd(request, call)),
    unary('/etcdserverpb.Auth/UserGet', (request, call) => auth.userGet(request, call)),
    unread('/etcdserverpb.Auth/UserList', (call) => auth.userList(call)),
    unary('/etcdserverpb.Auth/UserDelete', (request, call) => auth.userDelete(request, call)),
    unary('/etcdserverpb.Auth/UserChangePassword', (request, call) => auth.userChangePassword(request, call)),
    unary('/etcdserverpb.Auth/UserGrantRole', (request, call) => auth.userGrantRole(request, call)),
    unary('/etcdserverpb.Auth/UserRevokeRole', (request, call) => auth.userRevokeRole(request, call)),
    unary('/etcdserverpb.Auth/RoleAdd', (request, call) => auth.roleAdd(request, call)),
    unary('/etcdserverpb.Auth/RoleGet', (request, call) => auth.roleGet(request, call)),
    unread('/etcdserverpb.Auth/RoleList', (call) => auth.roleList(call)),
    unary('/etcdserverpb.Auth/RoleDelete', (request, call) => auth.roleDelete(request, call)),
    unary('/etcdserverpb.Auth/RoleGrantPermission', (request, call) => auth.roleGrantPermission(request, call)),
    unary('/etcdserverpb.Auth/RoleRevokePermission', (request, call) => auth.roleRevokePermission(request, call)),
  ];
}

type Route = readonly [path: string, handler: MethodHandler];

/**
 * Converts errors of the core, the log and the codecs to gRPC statuses; any other error is a bug, which the transport
 * reports.
 */
function unary(path: string, handle: UnaryHandler): Route {
  const schema = schemaOf(path);
  const failure = (error: unknown, request: Buffer): unknown => {
    return statusOf(error instanceof DecodeError ? withNames(error, schema, request) : error) ?? error;
  };
  const wrapped: UnaryHandler = (request, call) => {
    let answer: Reply | Promise<Reply>;
    try {
      answer = handle(request, call);
    } catch (error) {
      throw failure(error, request);
    }
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error: unknown) => {
      throw failure(error, request);
    });
  };
  return [path, { kind: 'unary', handle: wrapped }];
}

/** Ignores the contents of the request; invalid bytes are refused all the same. */
function unread(path: string, handle: (call: Call) => Reply | Promise<Reply>): Route {
  const schema = schemaOf(path);
  return unary(path, (request, call) => {
    checkMessage(schema, request);
    return handle(call);
  });
}

/** As `unary`, for a handler that sends a stream. */
function serverStream(path: string, handle: ServerStreamHandler): Route {
  const wrapped: ServerStreamHandler = async (request, call, send) => {
    try {
      await handle(request, call, send);
    } catch (error) {
      throw streamStatusOf(error) ?? error;
    }
  };
  return [path, { kind: 'serverStream', handle: wrapped }];
}

function schemaOf(path: string): RpcMethod['descriptor']['input'] {
  const method = rpcMethods.get(path);
  if (method === undefined) throw new Error(`${path} is no method of etcd's API`);
  return method.descriptor.input;
}
