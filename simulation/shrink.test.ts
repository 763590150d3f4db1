import { describe, expect, test } from 'vitest';
import { LeaderLease } from '../packages/server/src/leadership/leader-lease.ts';
import { runSeeds } from './run-seeds.ts';
import { serversScenarioOf, type ServersScenario } from './servers-scenario.ts';
import { shrink } from './shrink.ts';

interface Step {
  readonly atMs: number;
  readonly kind: string;
}

const scenario = {
  seed: 7,
  servers: 5,
  holders: 8,
  ttlMs: [500, 2_500],
  faultsMs: 6_543.21098,
  faults: Array.from({ length: 12 }, (_, index): Step => ({ atMs: index * 100.123456, kind: `fault ${index}` })),
  operations: [{ atMs: 1, kind: 'put' }],
  engineTrouble: 1,
  lateShare: 0.1,
};

const has = (list: readonly Step[], kind: string): boolean => list.some((each) => each.kind === kind);

/** The leader lease of every server never ends, until the returned function is called. */
function breakLeaderLeases(): () => void {
  const { holds } = LeaderLease.prototype;
  LeaderLease.prototype.holds = () => true;
  return () => {
    LeaderLease.prototype.holds = holds;
  };
}

describe('a failing scenario', () => {
  test('is reduced to the faults, servers and clients that the failure needs', async () => {
    const { scenario: short, attempts } = await shrink(
      scenario,
      async ({ faults, servers }) => has(faults, 'fault 3') && has(faults, 'fault 9') && servers >= 2,
      500,
    );
    expect(short.faults.map(({ kind }) => kind)).toEqual(['fault 3', 'fault 9']);
    expect(short).toMatchObject({ seed: 7, servers: 2, holders: 0, operations: [], engineTrouble: 0, lateShare: 0 });
    expect(short.ttlMs).toEqual(scenario.ttlMs);
    expect(attempts).toBeLessThan(100);
  });

  test('ends in round numbers, unless the failure needs the others', async () => {
    const isLong = async ({ faultsMs }: typeof scenario): Promise<boolean> => faultsMs > 3_000;
    const { scenario: short } = await shrink(scenario, isLong, 500);
    expect(short.faultsMs).toBeLessThan(3_500);
    expect(`${short.faultsMs}`).toMatch(/^\d+(\.\d\d?)?$/);
    const isExact = async ({ faults }: typeof scenario): Promise<boolean> => faults[3]?.atMs === 3 * 100.123456;
    expect((await shrink(scenario, isExact, 500)).scenario.faults[3]?.atMs).toBe(3 * 100.123456);
  });

  test('stays as it is without a simpler one, and within the attempts', async () => {
    expect(await shrink(scenario, async () => false, 500)).toMatchObject({ scenario });
    const { attempts, scenario: short } = await shrink(scenario, async () => true, 3);
    expect(attempts).toBe(3);
    expect(short.faults).toEqual([]);
  });

  test('of a server with a broken rule still violates that rule', async () => {
    const repair = breakLeaderLeases();
    try {
      const isFailing = async (scenario: ServersScenario): Promise<boolean> => {
        const { failures } = await runSeeds([scenario]);
        return failures[0]?.violations.some((violation) => violation.startsWith('L8 ')) ?? false;
      };
      const withoutKeys = (seed: number): ServersScenario => ({
        ...serversScenarioOf(seed),
        keyClients: 0,
        watchClients: 0,
      });
      let seed = 1;
      while (!(await isFailing(withoutKeys(seed)))) seed += 1;
      const before = withoutKeys(seed);
      const { scenario: short } = await shrink(before, isFailing, 60);
      expect(await isFailing(short)).toBe(true);
      const size = ({ servers, holders, faults }: ServersScenario): number => servers + holders + faults.length;
      expect(size(short)).toBeLessThan(size(before));
      expect(JSON.stringify(short).length).toBeLessThan(JSON.stringify(before).length);
    } finally {
      repair();
    }
  });
});
