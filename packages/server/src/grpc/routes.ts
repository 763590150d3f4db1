import { rpcMethods } from '@tenure/protocol';
import type { ClusterService } from './cluster-service.ts';
import type { HealthService } from './health-service.ts';
import type { KvService } from './kv-service.ts';
import type { LeaseService } from './lease-service.ts';
import type { MaintenanceService } from './maintenance-service.ts';
import { statusOf } from './status-of.ts';
import { GrpcCode, GrpcStatus } from './transport/grpc-status.ts';
import type {
  DuplexCall,
  GrpcRoutes,
  MethodHandler,
  Reply,
  ServerStreamHandler,
  UnaryHandler,
} from './transport/transport.ts';

export interface Services {
  readonly kv: KvService;
  readonly lease: LeaseService;
  readonly watch: { handle(call: DuplexCall): void };
  readonly maintenance: MaintenanceService;
  readonly cluster: ClusterService;
  readonly health: HealthService;
}

const timeToLive = '/etcdserverpb.Lease/LeaseTimeToLive';
const leases = '/etcdserverpb.Lease/LeaseLeases';
/** What other servers ask the leader for. */
export const leaderOnlyPaths: ReadonlySet<string> = new Set([timeToLive, leases]);

/** Answers a call that only the leader can: locally on the leader, by asking it elsewhere. */
export type LeaderOnly = (path: string, request: Buffer, local: () => Reply | Promise<Reply>) => Reply | Promise<Reply>;

/** Every path of etcd's API: what is built goes to its service, the rest says that it is not there yet. */
export function createRoutes(
  services: Services,
  leaderOnly: LeaderOnly = (_path, _request, local) => local(),
): GrpcRoutes {
  const { kv, lease, watch, maintenance, cluster, health } = services;
  const routes = new Map<string, MethodHandler>();
  for (const { path } of rpcMethods.values())
    routes.set(
      path,
      unary(() => Promise.reject(notBuilt(path))),
    );
  const built: readonly (readonly [string, MethodHandler])[] = [
    ['/etcdserverpb.KV/Range', unary((request, call) => kv.range(request, call))],
    ['/etcdserverpb.KV/Put', unary((request) => kv.put(request))],
    ['/etcdserverpb.KV/DeleteRange', unary((request, call) => kv.deleteRange(request, call))],
    ['/etcdserverpb.KV/Txn', unary((request, call) => kv.txn(request, call))],
    ['/etcdserverpb.KV/Compact', unary((request) => kv.compact(request))],
    ['/etcdserverpb.Watch/Watch', { kind: 'bidi', handle: (call) => watch.handle(call) }],
    ['/etcdserverpb.Lease/LeaseGrant', unary((request) => lease.grant(request))],
    ['/etcdserverpb.Lease/LeaseRevoke', unary((request) => lease.revoke(request))],
    ['/etcdserverpb.Lease/LeaseKeepAlive', { kind: 'bidi', handle: (call) => lease.keepAlive(call) }],
    [timeToLive, unary((request, call) => leaderOnly(timeToLive, request, () => lease.timeToLive(request, call)))],
    [leases, unary((request, call) => leaderOnly(leases, request, () => lease.leases(request, call)))],
    ['/etcdserverpb.Cluster/MemberList', unary(() => cluster.memberList())],
    ['/etcdserverpb.Maintenance/Alarm', unary((request) => maintenance.alarm(request))],
    ['/etcdserverpb.Maintenance/Status', unary(() => maintenance.status())],
    ['/etcdserverpb.Maintenance/Defragment', unary(() => maintenance.defragment())],
    ['/etcdserverpb.Maintenance/Hash', unary((_request, call) => maintenance.hash(call))],
    ['/etcdserverpb.Maintenance/HashKV', unary((request) => maintenance.hashKv(request))],
    ['/etcdserverpb.Maintenance/Snapshot', serverStream((_request, call, send) => maintenance.snapshot(call, send))],
    ['/grpc.health.v1.Health/Check', unary((request) => health.check(request))],
    ['/grpc.health.v1.Health/Watch', serverStream((request, call, send) => health.watch(request, call, send))],
  ];
  for (const [path, handler] of built) routes.set(path, handler);
  return routes;
}

/**
 * Gives errors of the core, the log and the codecs their gRPC form; what remains is a defect, which the transport
 * reports.
 */
function unary(handle: UnaryHandler): MethodHandler {
  const wrapped: UnaryHandler = (request, call) => {
    let answer: Reply | Promise<Reply>;
    try {
      answer = handle(request, call);
    } catch (error) {
      throw statusOf(error) ?? error;
    }
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error: unknown) => {
      throw statusOf(error) ?? error;
    });
  };
  return { kind: 'unary', handle: wrapped };
}

/** The same for a handler that sends a stream. */
function serverStream(handle: ServerStreamHandler): MethodHandler {
  const wrapped: ServerStreamHandler = async (request, call, send) => {
    try {
      await handle(request, call, send);
    } catch (error) {
      throw statusOf(error) ?? error;
    }
  };
  return { kind: 'serverStream', handle: wrapped };
}

function notBuilt(path: string): GrpcStatus {
  const method = path.slice(path.lastIndexOf('/') + 1);
  return new GrpcStatus(GrpcCode.unimplemented, `${method} is not implemented by this version of Tenure`);
}
