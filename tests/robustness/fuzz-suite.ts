import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FloodReport } from './call-flood.ts';
import { type Footprint, FuzzRun } from './fuzz-run.ts';
import { RenewalProbe } from './renewal-probe.ts';

export interface FuzzSize {
  readonly seed: number;
  /** Messages that must be refused, or that only read. */
  readonly refused: number;
  /** Frames of HTTP/2 and requests of HTTP/1, most of them invalid. */
  readonly hostile: number;
  /** Messages that may write. */
  readonly any: number;
  /** Whether to wait until the server has detected its dead connections, and check that it holds nothing for them. */
  readonly outlastsDead: boolean;
}

const inputsPerMs = 1;
const storeGauges = ['tenure_leases_in_memory', 'tenure_leases_checkpointed', 'tenure_keys'];
const clientGauges = ['tenure_watchers', 'tenure_watch_streams'];
/** The size of a store without keys, with its last tombstones and some headers. */
const emptyStateBytes = 10_000;
/** During a flood, on a machine that is not overloaded; usually it is a twentieth of that. */
const maxNeighbourDelayMs = 1_000;
const neighbourLease = 7n;
/** A connection that violated the protocol is detected as dead by an unanswered PING. */
const deadConnectionMs = 45_000;
const leastTimeoutMs = 120_000;
/** Inputs that fill caches and pools before memory is compared. */
const warmUpShare = 0.1;
/** The allowed growth: compiled code, caches that grow slowly, pools of connections. */
const maxUsedGrowthMiB = 24;
const maxResidentGrowthMiB = 256;

/** Registers the tests of one run. They share a server: each finds what the previous ones left behind. */
export function describeFuzz({ seed, refused, hostile, any, outlastsDead }: FuzzSize): void {
  let run: FuzzRun;
  let atFirst: Footprint;
  let neighbour: RenewalProbe;
  const timeout = (inputs: number): { timeout: number } => ({ timeout: leastTimeoutMs + inputs / inputsPerMs });

  beforeAll(async () => {
    run = await FuzzRun.start(seed);
    await run.sendHostile(hostile * warmUpShare);
    await run.sendRefused(refused * warmUpShare);
    atFirst = await run.footprint();
    neighbour = await RenewalProbe.start(run.server, neighbourLease);
  });
  afterAll(async () => {
    await neighbour?.stop();
    await run?.server.stop();
  });

  /** The inputs of one client must not make another one wait. */
  async function expectServed(inputs: string): Promise<void> {
    const { longestMs, answered } = await neighbour.delays();
    console.log(
      `${answered} renewals of another client among the ${inputs}, the slowest in ${longestMs.toFixed(0)} ms`,
    );
    expect(longestMs).toBeLessThan(maxNeighbourDelayMs);
    expect(answered).toBeGreaterThan(0);
  }

  test(`${hostile} frames and HTTP/1 requests, most of them invalid, change nothing`, timeout(hostile), async () => {
    const before = await run.fingerprint();
    expect(await run.sendHostile(hostile)).toBeGreaterThanOrEqual(hostile);
    await expectServed('frames and requests');
    expect(await run.fingerprint()).toEqual(before);
  });

  test(`${refused} messages that are refused or only read change nothing`, timeout(refused), async () => {
    const before = await run.fingerprint();
    const report = await run.sendRefused(refused);
    print(report);
    await expectServed('messages that are refused');
    expect(report.messages).toBeGreaterThanOrEqual(refused);
    expect(await run.fingerprint()).toEqual(before);
    expect(defectsOf(run)).toBe('');
    await expectMemoryBack(run, atFirst);
    await run.put();
  });

  test(`${any} messages of any kind leave a server that works`, timeout(any), async () => {
    const report = await run.sendAny(any);
    print(report);
    await expectServed('messages of any kind');
    expect(report.statuses.get('/etcdserverpb.KV/Put 0')).toBeGreaterThan(0);
    expect(report.statuses.get('/etcdserverpb.KV/Txn 0')).toBeGreaterThan(0);
    expect(defectsOf(run)).toBe('');
    await run.put();
  });

  test('nothing remains afterwards', { timeout: leastTimeoutMs }, async () => {
    await neighbour.stop();
    await run.wipe();
    const gauges = outlastsDead ? [...clientGauges, ...storeGauges] : storeGauges;
    for (const gauge of gauges) expect(await run.server.settled(gauge, 0, deadConnectionMs), gauge).toBe(0);
    expect(await run.server.settled('tenure_state_bytes', emptyStateBytes, deadConnectionMs)).toBeLessThan(
      emptyStateBytes,
    );
    await expectMemoryBack(run, atFirst);
    await run.put();
  });
}

/** The server's own log lines, without those about its clients. */
function defectsOf({ server }: FuzzRun): string {
  const lines = server.complaints.split('\n').filter((line) => line !== '' && !line.includes('"level":"warn"'));
  return lines.slice(0, 3).join('\n');
}

async function expectMemoryBack(run: FuzzRun, atFirst: Footprint): Promise<void> {
  const now = await run.footprint();
  const [first, last] = [atFirst, now].map(({ usedMiB, residentMiB }) => {
    return `${usedMiB.toFixed(1)} MiB in use, ${residentMiB.toFixed(0)} MiB resident`;
  });
  console.log(`at first ${first}; now ${last}`);
  expect(now.usedMiB - atFirst.usedMiB).toBeLessThan(maxUsedGrowthMiB);
  expect(now.residentMiB - atFirst.residentMiB).toBeLessThan(maxResidentGrowthMiB);
}

function print({ messages, statuses }: FloodReport): void {
  const byStatus = new Map<number, number>();
  for (const [name, count] of statuses) {
    const status = Number(name.split(' ')[1]);
    byStatus.set(status, (byStatus.get(status) ?? 0) + count);
  }
  const counts = Array.from(byStatus, ([status, count]) => `${count} of status ${status}`).toSorted();
  console.log(`${messages} messages in calls of ${statuses.size} kinds: ${counts.join(', ')}`);
}
