import { runH2load } from './h2load.ts';
import { withCost } from './load-cost.ts';
import { methods } from '../wire/etcd-messages.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';

const fullRequests = 200_000;
const quickRequests = 20_000;
const warmUpShare = 0.2;

/**
 * Warms the server up, runs the measured load, and returns its rate, the processor time of the server for each request,
 * and the bytes of its replies.
 */
export async function unaryLoad(
  server: MeasuredServer,
  method: keyof typeof methods,
  message: Buffer,
  requests: number,
): Promise<{ perSecond: number; costUs: number; dataBytes: number; requestsWithWarmUp: number }> {
  const load = { address: server.address, path: methods[method], message };
  const warmUp = Math.round(requests * warmUpShare);
  await runH2load({ ...load, requests: warmUp });
  const { result, costUs } = await withCost(server, requests, () => runH2load({ ...load, requests }));
  return { ...result, costUs, requestsWithWarmUp: warmUp + requests };
}

export function unaryRequests(quick: boolean): number {
  return quick ? quickRequests : fullRequests;
}

/** h2load counts a gRPC error as a success, so a load is valid only after its effects were counted. */
export function expectWork(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${what}: ${found} found, ${wanted} wanted: the load did not do its work`);
}
