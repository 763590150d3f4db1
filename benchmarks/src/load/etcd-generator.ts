import { execFile } from 'node:child_process';
import { h2loadConnections, h2loadStreams } from './h2load.ts';
import { etcdPeer } from '../servers/etcd-peer.ts';

const timeoutMs = 600_000;
const maxOutputBytes = 64 * 1024 * 1024;

/** As many connections and concurrent calls as h2load has. */
export const generatorSizes: readonly string[] = [
  `--conns=${h2loadConnections}`,
  `--clients=${h2loadConnections * h2loadStreams}`,
];

/** Its client needs several times the processor time of h2load, so that fewer requests take as long. */
export function generatorRequests(quick: boolean): number {
  return quick ? 10_000 : 100_000;
}

/** What etcd's load generator says of one load, or of one part of it. */
export interface GeneratorResult {
  readonly perSecond: number;
  readonly p99Ms: number;
}

/**
 * Runs etcd's own load generator, which uses etcd's Go client, and returns one result for each summary that it prints.
 * Undefined without Go. It reports errors of calls and goes on: any of them fails the run.
 */
export async function runGenerator(
  address: string,
  args: readonly string[],
): Promise<readonly GeneratorResult[] | undefined> {
  const { generator } = etcdPeer();
  if (generator === undefined) return undefined;
  return parseSummaries(await run(generator, [`--endpoints=${address}`, '--precise', ...args]));
}

function run(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: maxOutputBytes, timeout: timeoutMs }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else
        reject(new Error(`etcd's load generator failed (${args.join(' ')}): ${error.message}\n${stderr.slice(-2000)}`));
    });
  });
}

/** The results in the output, in its order. */
export function parseSummaries(output: string): readonly GeneratorResult[] {
  if (output.includes('Error distribution:')) {
    throw new Error(`calls of etcd's load generator failed:\n${output.slice(output.indexOf('Error distribution:'))}`);
  }
  const summaries = output.split('Summary:').slice(1);
  const results = summaries.map((summary) => ({
    perSecond: Number(/Requests\/sec:\s+([\d.e+-]+)/.exec(summary)?.[1]),
    p99Ms: Number(/ 99% in ([\d.e+-]+) secs/.exec(summary)?.[1] ?? 0) * 1000,
  }));
  if (results.length === 0 || results.some(({ perSecond }) => !(perSecond > 0))) {
    throw new Error(`etcd's load generator printed no rate:\n${output.slice(-2000)}`);
  }
  return results;
}
