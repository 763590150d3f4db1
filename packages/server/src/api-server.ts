import type { StateMachine } from '@tenure/core';
import type { Cluster } from './cluster/cluster.ts';
import { formatUrl, type ListenUrl } from './config/listen-url.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { Authentication } from './authentication.ts';
import { AccessGuard } from './api/access-guard.ts';
import { AuditGuard } from './api/audit-guard.ts';
import type { AuditSink } from './api/audit-record.ts';
import { AuthService } from './api/auth-service.ts';
import { ClusterService } from './api/cluster-service.ts';
import { CommandRules } from './api/command-rules.ts';
import { CurrentReplies } from './api/current-replies.ts';
import { HealthService } from './api/health-service.ts';
import type { Identity } from './api/identity.ts';
import { KvService } from './api/kv-service.ts';
import { LeaseService, type RenewalHandler } from './api/lease-service.ts';
import { LongReplies } from './api/long-replies.ts';
import { LeaderRequirement } from './api/leader-requirement.ts';
import { MaintenanceService } from './api/maintenance-service.ts';
import { MembershipService, type MembershipServiceOptions } from './api/membership-service.ts';
import { QuotaGuard } from './api/quota-guard.ts';
import { createRoutes, leaderOnlyPaths } from './api/routes.ts';
import { SlicedWork, type Caller } from './api/sliced-work.ts';
import { statusNamed } from './api/status-of.ts';
import { createQueueServices } from './concurrency/create-queue-services.ts';
import { BrowserAccess } from './gateway/browser-access.ts';
import { Gateway } from './gateway/gateway.ts';
import { type GrpcServer, type HttpHandler, builtReply, defaultTransportLimits } from '@tenure/grpc-server';
import { type ClientTls, listenerTls } from './transport/client-tls.ts';
import { statusFormat } from './transport/status-format.ts';
import type { GrpcRoutes, GrpcServerOptions } from './transport/transport.ts';
import { WatchService } from './watch/watch-service.ts';
import type { Lessor } from './leases/lessor.ts';
import type { Logger } from './logging/logger.ts';
import { connectionLimit, maxPeerConnections } from './connection-limit.ts';
import { Authenticator } from './auth/authenticator.ts';
import type { Random } from './random/random.ts';
import type { Clock } from './time/clock.ts';
import type { ReplicaAccess } from './replica/replica-access.ts';

/** gRPC's own bytes beside the largest request, with the same allowance as etcd. */
export const grpcOverheadBytes = 512 * 1024;

export interface ApiServerOptions {
  readonly config: ServerConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly renewals: RenewalHandler;
  /** How clients log in. */
  readonly authentication: Pick<Authentication, 'passwords' | 'tokens'>;
  /** Where requests are recorded, if they are. */
  readonly audit: AuditSink | undefined;
  /** Throws on a server that does not lead. */
  readonly lessor: () => Lessor;
  /** The id of the leader, as far as this server knows; 0n without a leader. */
  readonly leaderId: () => bigint;
  readonly onHttp: HttpHandler;
  readonly createTransport: (options: GrpcServerOptions) => ServingTransport;
  /** The other servers. Without them, this server is alone and leads. */
  readonly cluster: Pick<Cluster, 'reach' | 'leaderOnly' | 'routes' | 'linkPath' | 'lead' | 'canAllApply'> | undefined;
}

/** The transport options that the server sets. */
export type ServingTransport = Pick<GrpcServer, 'listen' | 'close'>;

/** Everything between the sockets and the replica: the services, their routes, and the transport that serves them. */
export interface ApiServer {
  readonly transport: ServingTransport;
  readonly watch: WatchService;
  /**
   * Answers a call that only the leader can answer and that a follower has forwarded, as it would for a client. The
   * follower has authenticated the client; its permission is checked here.
   */
  readonly answer: (path: string, request: Buffer, by: Caller) => Promise<Buffer>;
  readonly quota: QuotaGuard;
  /** The checks of a command, for clients and followers alike. */
  readonly rules: CommandRules;
  /** What clients require of this server by metadata. */
  readonly requirement: LeaderRequirement;
  /** What records the requests, if they are to be. */
  readonly audit: AuditGuard | undefined;
}

/** A server alone always leads, and has no other server to transfer leadership to. */
const onlyServer: Pick<MembershipServiceOptions, 'leads' | 'resign'> = {
  leads: () => true,
  resign: () => Promise.reject(statusNamed('BadLeaderTransferee')),
};

export function createApiServer(options: ApiServerOptions): ApiServer {
  const { config, log, clock, random, replica, identity, renewals, lessor, leaderId, onHttp, cluster } = options;
  const { passwords, tokens } = options.authentication;
  const reach = cluster?.reach;
  const { quotaBackendBytes, maxRequestBytes, maxTxnOps, minLeaseTtlMs, watchProgressNotifyIntervalMs } = config;
  const { state } = replica;
  const quota = new QuotaGuard(replica, quotaBackendBytes, identity.memberId);
  const canAllApply = (kind: number): boolean => cluster?.canAllApply(kind) ?? true;
  const rules = new CommandRules({ state: () => state, quota, maxRequestBytes, maxTxnOps, canAllApply });
  const watch = new WatchService({
    clock,
    random,
    history: state.history,
    access: state,
    headerPrefix: identity.headerPrefix,
    raftTerm: () => state.epoch,
    progressNotifyIntervalMs: watchProgressNotifyIntervalMs,
    maxRequestBytes,
  });
  const longReplies = new LongReplies(new SlicedWork(clock));
  const isUnreachable = (id: bigint): boolean => reach?.isUnreachable(id) ?? false;
  const kv = new KvService({ replica, identity, rules, longReplies });
  const lease = new LeaseService({ random, replica, renewals, lessor, identity, rules, longReplies, minLeaseTtlMs });
  const etcdRoutes = createRoutes(
    {
      kv,
      lease,
      watch,
      ...createQueueServices({ kv, lease, watch, replica }),
      maintenance: new MaintenanceService({
        clock,
        replica,
        identity,
        rules,
        quotaBytes: quotaBackendBytes,
        leaderId,
        logIndex: () => reach?.logIndex ?? replica.position.index,
        problem: () => reach?.problem,
      }),
      cluster: new ClusterService(replica, identity, isUnreachable),
      membership: new MembershipService({ replica, identity, isUnreachable, ...(cluster?.lead ?? onlyServer) }),
      auth: new AuthService({ replica, identity, rules, passwords, tokens }),
      health: new HealthService(),
    },
    cluster?.leaderOnly,
  );
  const requirement = new LeaderRequirement(() => reach?.hasLeader ?? true);
  const current = new CurrentReplies(clock, () => replica.linearize());
  const access = new AccessGuard({
    state,
    authenticator: new Authenticator({ state, tokens }),
    caughtUp: () => current.caughtUp(),
  });
  const audit = options.audit && new AuditGuard(options.audit, state, clock);
  const guarded = audited(audit, etcdRoutes, access);
  const routes = requirement.guard(current.guard(new Map([...guarded, ...(cluster?.routes ?? [])])));
  const hasPeerPort = config.listenPeerUrls.length > 0;
  const limits = limitsOf(config, hasPeerPort);
  const reserved = cluster === undefined || hasPeerPort ? {} : { peerPath: cluster.linkPath };
  const http = servedOverHttp({ config, state, routes, pages: onHttp });
  const transport = options.createTransport({ routes, ...http, log, limits, statusFormat, ...reserved });
  const answer = async (path: string, request: Buffer, by: Caller): Promise<Buffer> => {
    const handler = leaderOnlyPaths.has(path) ? etcdRoutes.get(path) : undefined;
    if (handler?.kind !== 'unary') throw statusNamed('NoLeader');
    const { connection, signal, requester } = by;
    const call = { path, metadata: {}, deadlineMs: Infinity, connection, signal, requester };
    return builtReply(await handler.handle(request, call));
  };
  return { transport, watch, answer, quota, rules, requirement, audit };
}

function limitsOf({ maxRequestBytes }: ServerConfig, hasPeerPort: boolean) {
  return {
    maxReceiveBytes: maxRequestBytes + grpcOverheadBytes,
    maxConnections: connectionLimit(defaultTransportLimits.maxConnections, hasPeerPort ? maxPeerConnections : 0),
  };
}

interface ServedOverHttp {
  readonly config: ServerConfig;
  readonly state: StateMachine;
  readonly routes: GrpcRoutes;
  readonly pages: HttpHandler;
}

/** The pages and the JSON gateway, behind the rules for browsers. */
function servedOverHttp({
  config,
  state,
  routes,
  pages,
}: ServedOverHttp): Pick<GrpcServerOptions, 'onHttp' | 'httpStreams'> {
  const browsers = new BrowserAccess(config);
  return { onHttp: browsers.guard(pages), httpStreams: new Gateway({ routes, access: browsers, state }) };
}

/** The routes behind the access guard, with the requests recorded if they are to be. */
function audited(audit: AuditGuard | undefined, routes: GrpcRoutes, access: AccessGuard): GrpcRoutes {
  if (audit === undefined) return access.guard(routes);
  return audit.guardCalls(access.guard(audit.guardMessages(routes)));
}

/** Listens at every address, with TLS at https:// ones. Resolves with the URLs, with the actual ports. */
export async function listenAt(
  transport: ServingTransport,
  listenUrls: readonly ListenUrl[],
  secure: ClientTls | undefined,
): Promise<readonly string[]> {
  const urls: string[] = [];
  for (const url of listenUrls) {
    const tls = url.scheme === 'https' ? secure : undefined;
    if (url.scheme === 'https' && tls === undefined) throw new Error(`${formatUrl(url)} has no certificate`);
    const { port } = await transport.listen(url.host, url.port, tls && listenerTls(tls));
    urls.push(formatUrl({ ...url, port }));
  }
  return urls;
}
