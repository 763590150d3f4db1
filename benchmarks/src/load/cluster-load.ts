import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import type { FrameLoadOptions } from '../wire/frame-load.ts';

/** The target of a load: the leader, or all three members evenly. */
export type Reach = 'leader' | 'all';

/** As many concurrent requests as with one server, over a number of connections that three members share evenly. */
const sizes = { connections: 9, streamsPerConnection: 90 };
const fullRequests = 60_000;
const quickRequests = 6_000;
const warmUpShare = 0.5;

/** The requests. Their indexes count warm-up and load together. */
export type ClusterRequests = Pick<FrameLoadOptions, 'path' | 'framedRequest'> & {
  readonly onReply?: (index: number, message: Buffer) => void;
};

export interface ClusterLoadResult {
  readonly perSecond: number;
  readonly requestsWithWarmUp: number;
  /** Processor time of each part of the system and of the load itself: what shares the cores. */
  readonly details: Readonly<Record<string, number>>;
}

export async function addressesOf(cluster: MeasuredCluster, reach: Reach): Promise<readonly string[]> {
  const leader = await cluster.leader();
  return reach === 'leader' ? [leader] : cluster.addresses;
}

/** Warms the cluster up, and runs the measured load. */
export async function clusterLoad(
  cluster: MeasuredCluster,
  reach: Reach,
  { path, framedRequest, onReply }: ClusterRequests,
  quick: boolean,
): Promise<ClusterLoadResult> {
  const address = await addressesOf(cluster, reach);
  const requests = quick ? quickRequests : fullRequests;
  const warmUp = requests * warmUpShare;
  const run = (first: number, count: number) =>
    runFrameLoad({
      ...sizes,
      address,
      path,
      requests: count,
      framedRequest: (index) => framedRequest(first + index),
      onReply: (index, message) => onReply?.(first + index, message),
    });
  await run(0, warmUp);
  const before = { ...cluster.cpu(), load: process.cpuUsage() };
  const { perSecond } = await run(warmUp, requests);
  const after = cluster.cpu();
  const load = process.cpuUsage(before.load);
  const perRequest = (ms: number) => (ms * 1000) / requests;
  return {
    perSecond,
    requestsWithWarmUp: requests + warmUp,
    details: {
      'processor time a request, µs: servers': perRequest(after.membersMs - before.membersMs),
      'below them': perRequest(after.belowMs - before.belowMs),
      load: perRequest((load.user + load.system) / 1000),
    },
  };
}
