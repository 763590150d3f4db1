import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FloodReport } from './call-flood.ts';
import { type Footprint, FuzzRun } from './fuzz-run.ts';
import { RenewalProbe } from './renewal-probe.ts';

export interface FuzzSize {
  readonly seed: number;
  /** Messages that must be refused, or only read. */
  readonly refused: number;
  /** Frames of HTTP/2 and requests of HTTP/1, few of them sound. */
  readonly hostile: number;
  /** Messages that may write. */
  readonly any: number;
  /** Whether to wait until the server has found its dead connections, and see that nothing is held for them. */
  readonly outlastsDead: boolean;
}

const inputsPerMs = 1;
const storeGauges = ['tenure_leases_live', 'tenure_leases_dated', 'tenure_keys'];
const clientGauges = ['tenure_watchers', 'tenure_watch_streams'];
/** What is counted for a store that holds no key, its last deletions and some headers. */
const emptyStateBytes = 10_000;
/** Among a flood, on a machine that has time for it; it is a twentieth of that as a rule. */
const maxNeighbourDelayMs = 1_000;
const neighbourLease = 7n;
/** A connection that broke the protocol is found dead by the PING that it does not answer. */
const deadConnectionMs = 45_000;
const leastTimeoutMs = 120_000;
/** What fills caches and pools, before memory is compared. */
const warmUpShare = 0.1;
/** How much more may be in use afterwards: compiled code, caches that grow slowly, pools of connections. */
const maxUsedGrowthMiB = 24;
const maxResidentGrowthMiB = 256;

/** Registers the tests of one run. They share a server: each finds what the one before it left behind. */
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

  /** One client's inputs are no excuse to let another one wait. */
  async function expectServed(inputs: string): Promise<void> {
    const { longestMs, answered } = await neighbour.delays();
    console.log(
      `${answered} renewals of another client among the ${inputs}, the slowest in ${longestMs.toFixed(0)} ms`,
    );
    expect(longestMs).toBeLessThan(maxNeighbourDelayMs);
    expect(answered).toBeGreaterThan(0);
  }

  test(`${hostile} frames and HTTP/1 requests, few of them sound, change nothing`, timeout(hostile), async () => {
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

  test('nothing is left of it all', { timeout: leastTimeoutMs }, async () => {
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

/** What the server has said of itself, without what it says of its clients. */
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
