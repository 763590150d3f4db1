import { runH2load } from './h2load.ts';
import { methods } from '../wire/etcd-messages.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';

const fullRequests = 200_000;
const quickRequests = 20_000;
const warmUpShare = 0.2;

/** Warms the server up, runs the measured load, and returns its rate and the bytes of its replies. */
export async function unaryLoad(
  server: MeasuredServer,
  method: keyof typeof methods,
  message: Buffer,
  quick: boolean,
): Promise<{ perSecond: number; dataBytes: number; requests: number; requestsWithWarmUp: number }> {
  const requests = unaryRequests(quick);
  const load = { address: server.address, path: methods[method], message };
  const warmUp = Math.round(requests * warmUpShare);
  await runH2load({ ...load, requests: warmUp });
  const result = await runH2load({ ...load, requests });
  return { ...result, requests, requestsWithWarmUp: warmUp + requests };
}

export function unaryRequests(quick: boolean): number {
  return quick ? quickRequests : fullRequests;
}

/** h2load counts a gRPC error as a success, so a load is valid only after its effects were counted. */
export function expectWork(what: string, found: number, wanted: number): void {
  if (found !== wanted) throw new Error(`${what}: ${found} found, ${wanted} wanted: the load did not do its work`);
}
