import type { MeasuredServer } from '../servers/measured-server.ts';
import { runGenerator } from './etcd-generator.ts';
import type { GeneratorResult } from './etcd-generator.ts';

/** Details that the report shows in a place of their own. */
export const costDetail = 'processor time a request, µs';
export const generatorRateDetail = "with etcd's client, 1/s";
const generatorCostDetail = "processor time a request with etcd's client, µs";

type Details = Readonly<Record<string, number>>;

/** Runs a load of so many requests; `costUs` is the processor time of the server for each. */
export async function withCost<Result>(
  server: MeasuredServer,
  requests: number,
  load: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly costUs: number }> {
  const before = server.cpuMs();
  const result = await load();
  return { result, costUs: ((server.cpuMs() - before) * 1000) / requests };
}

/**
 * The same work with etcd's load generator: a second figure, since its client does more for each request than ours.
 * `summary` counts the summaries that it prints. No details without Go.
 */
export async function generatorDetails(
  server: MeasuredServer,
  requests: number,
  args: readonly string[],
  summary = 0,
): Promise<Details> {
  const { result, costUs } = await withCost(server, requests, () => runGenerator(server.address, args));
  if (result === undefined) return {};
  return { [generatorRateDetail]: summaryAt(result, summary).perSecond, [generatorCostDetail]: costUs };
}

export function summaryAt(results: readonly GeneratorResult[], at: number): GeneratorResult {
  const result = results[at];
  if (result === undefined) throw new Error(`etcd's load generator printed ${results.length} summaries, not ${at + 1}`);
  return result;
}
