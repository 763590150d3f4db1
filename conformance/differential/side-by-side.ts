import * as fc from 'fast-check';
import type { Effort } from '../../tests/harness/effort.ts';
import { startEtcd } from '../servers/etcd-server.ts';
import type { RunningServer } from '../servers/server-options.ts';
import { startTenure } from '../servers/tenure-server.ts';
import { expectSameAnswer, expectSameEnd } from './same.ts';
import { history, type Operation } from './operation.ts';
import { Run } from './run.ts';

export interface Histories {
  readonly seed: number;
  readonly runs: number;
  readonly effort: Effort;
}

/** Only guards against hanging: a history takes about a tenth of a second. */
export const patienceMs = (runs: number): number => 180_000 + runs * 5_000;

/** The rest of the timeout when the search for a shorter history ends, and its result is reported. */
const reportMs = 60_000;

/**
 * Sends random histories to a new etcd and a new Tenure, one history after the other: each history finds the data of
 * the earlier ones, so a failure depends only on the seed and the number of runs.
 */
export async function expectSameHistories({ seed, runs, effort }: Histories): Promise<void> {
  const [etcd, tenure] = await Promise.all([startEtcd(), startTenure()]);
  try {
    let number = 0;
    const property = fc.asyncProperty(history, async (operations) => {
      number += 1;
      await expectSameHistory({ etcd, tenure, operations, number });
    });
    const limits = { interruptAfterTimeLimit: patienceMs(runs) - reportMs, markInterruptAsFailure: true };
    const found = await fc.check(property, { seed, numRuns: runs, ...limits });
    if (found.failed) throw await failure(found, effort);
  } finally {
    await Promise.all([etcd.stop(), tenure.stop()]);
  }
}

async function failure(found: fc.RunDetails<[Operation[]]>, effort: Effort): Promise<Error> {
  const variables = effort === 'commit' ? '' : `TENURE_TEST_EFFORT=${effort} `;
  const command = `${variables}TENURE_TEST_SEED=${found.seed} npm test -- conformance/differential.test.ts`;
  const report = (await fc.asyncDefaultReportMessage(found)) ?? 'no report';
  return new Error(`To repeat it: ${command}\n${report}`, { cause: found.errorInstance });
}

interface OneHistory {
  readonly etcd: RunningServer;
  readonly tenure: RunningServer;
  readonly operations: readonly Operation[];
  /** Each history has its own keys and leases. */
  readonly number: number;
}

async function expectSameHistory({ etcd, tenure, operations, number }: OneHistory): Promise<void> {
  const [reference, subject] = await Promise.all([Run.begin(etcd, number), Run.begin(tenure, number)]);
  const calls: string[] = [];
  try {
    for (const operation of operations) {
      const [expected, actual] = await Promise.all([reference.send(operation), subject.send(operation)]);
      calls.push(`${operation.call} ${showRequest(operation.make(subject))}`);
      expectSameAnswer({ call: operation.call, actual, expected, calls: calls.join('\n') });
    }
    const [expected, actual] = await Promise.all([reference.end(), subject.end()]);
    expectSameEnd(actual, expected, calls.join('\n'));
  } finally {
    await Promise.all([reference.close(), subject.close()]);
  }
}

function showRequest(request: object): string {
  return JSON.stringify(request, (_name, value: unknown) => {
    if (typeof value === 'bigint') return `${value}`;
    return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
  });
}
