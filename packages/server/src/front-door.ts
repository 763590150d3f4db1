import type { Cluster } from './cluster/cluster.ts';
import { formatHttpUrl } from './config/listen-url.ts';
import type { ServerConfig } from './config/server-config.ts';
import { ClusterService } from './api/cluster-service.ts';
import { CommandRules } from './api/command-rules.ts';
import { CurrentReplies } from './api/current-replies.ts';
import { HealthService } from './api/health-service.ts';
import type { Identity } from './api/identity.ts';
import { KvService } from './api/kv-service.ts';
import { LeaseService } from './api/lease-service.ts';
import { LongReplies } from './api/long-replies.ts';
import { LeaderRequirement } from './api/leader-requirement.ts';
import { MaintenanceService } from './api/maintenance-service.ts';
import { MembershipService, type MembershipServiceOptions } from './api/membership-service.ts';
import { QuotaGuard } from './api/quota-guard.ts';
import { createRoutes } from './api/routes.ts';
import { SlicedWork } from './api/sliced-work.ts';
import { statusNamed } from './api/status-of.ts';
import { createHttp2Transport, type Transport } from './transport/http2-transport.ts';
import { defaultTransportLimits } from './transport/transport-limits.ts';
import type { HttpHandler, MethodHandler } from './transport/transport.ts';
import { WatchService } from './watch/watch-service.ts';
import type { LeaseDesk } from './leases/lease-desk.ts';
import type { LeaseKeeper } from './leases/lease-keeper.ts';
import type { Logger } from './logging/logger.ts';
import { connectionsWithin } from './connections-within.ts';
import type { Random } from './random/random.ts';
import type { Clock } from './time/clock.ts';
import type { ReplicaAccess } from './replica/replica-access.ts';

/** gRPC's own bytes beside the largest request, as etcd grants them. */
const grpcOverheadBytes = 512 * 1024;

export interface FrontDoorOptions {
  readonly config: ServerConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly desk: LeaseDesk;
  /** On the server that leads. Throws on another. */
  readonly keeper: () => LeaseKeeper;
  /** The member that leads, as far as this server knows; 0n while nobody does. */
  readonly leaderId: () => bigint;
  readonly onHttp: HttpHandler;
  /** The other servers. Without them, this one is the only one, and leads. */
  readonly cluster: Pick<Cluster, 'reach' | 'leaderOnly' | 'routes' | 'linkPath' | 'lead'> | undefined;
}

/** Everything between the sockets and the replica: the services, their routes, and the transport that serves them. */
export interface FrontDoor {
  readonly transport: Transport;
  readonly watch: WatchService;
  readonly routes: ReadonlyMap<string, MethodHandler>;
  readonly quota: QuotaGuard;
  /** What a command must be like, whoever sent it. */
  readonly rules: CommandRules;
  /** What clients require of this server by metadata. */
  readonly requirement: LeaderRequirement;
}

/** It leads always, and knows no other that it could hand the lead to. */
const onlyServer: Pick<MembershipServiceOptions, 'leads' | 'resign'> = {
  leads: () => true,
  resign: () => Promise.reject(statusNamed('BadLeaderTransferee')),
};

export function openFrontDoor(options: FrontDoorOptions): FrontDoor {
  const { config, log, clock, random, replica, identity, desk, keeper, leaderId, onHttp, cluster } = options;
  const reach = cluster?.reach;
  const { quotaBackendBytes, maxRequestBytes, maxTxnOps, minLeaseTtlMs, watchProgressNotifyIntervalMs } = config;
  const { state } = replica;
  const quota = new QuotaGuard(replica, quotaBackendBytes, identity.memberId);
  const rules = new CommandRules({ state: () => state, quota, maxRequestBytes, maxTxnOps });
  const watch = new WatchService({
    clock,
    random,
    history: state.history,
    headerPrefix: identity.headerPrefix,
    raftTerm: () => state.epoch,
    progressNotifyIntervalMs: watchProgressNotifyIntervalMs,
    maxRequestBytes,
  });
  const longReplies = new LongReplies(new SlicedWork(clock));
  const isUnreachable = (id: bigint): boolean => reach?.isUnreachable(id) ?? false;
  const etcdRoutes = createRoutes(
    {
      kv: new KvService({ replica, identity, rules, longReplies }),
      lease: new LeaseService({ random, replica, desk, keeper, identity, rules, longReplies, minLeaseTtlMs }),
      watch,
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
      health: new HealthService(),
    },
    cluster?.leaderOnly,
  );
  const requirement = new LeaderRequirement(() => reach?.hasLeader ?? true);
  const current = new CurrentReplies(clock, () => replica.linearize());
  const routes = requirement.guard(current.guard(new Map([...etcdRoutes, ...(cluster?.routes ?? [])])));
  const limits = {
    maxReceiveBytes: maxRequestBytes + grpcOverheadBytes,
    maxConnections: connectionsWithin(defaultTransportLimits.maxConnections),
  };
  const reserved = cluster === undefined ? {} : { peerPath: cluster.linkPath };
  const transport = createHttp2Transport({ routes, onHttp, log, limits, ...reserved });
  return { transport, watch, routes, quota, rules, requirement };
}

/** Listens at every configured address. Resolves with the URLs, with the ports that were bound. */
export async function listenAt(transport: Transport, config: ServerConfig): Promise<readonly string[]> {
  const urls: string[] = [];
  for (const { host, port } of config.listenClientUrls) {
    const address = await transport.listen(host, port);
    urls.push(formatHttpUrl({ host, port: address.port }));
  }
  return urls;
}
