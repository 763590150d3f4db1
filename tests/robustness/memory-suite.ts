import { afterAll, beforeAll, expect, test } from 'vitest';
import { ComingsAndGoings } from './churn.ts';
import { TestedServer } from './tested-server.ts';

export interface MemorySize {
  readonly watches: number;
  readonly keepAliveStreams: number;
  readonly leases: number;
  /** The allowed growth of the memory in use after each crowd. */
  readonly maxGrowthMiB: number;
}

/** Done before the first measurement, so that code is compiled and pools are filled. */
const warmUpShare = 0.2;
const mebibyte = 1024 * 1024;

/** Registers the tests of one run. */
export function describeMemory({ watches, keepAliveStreams, leases, maxGrowthMiB }: MemorySize): void {
  let server: TestedServer;
  let crowd: ComingsAndGoings;

  beforeAll(async () => {
    server = await TestedServer.start({ hook: 'collect-garbage' });
    crowd = new ComingsAndGoings(server);
  });
  afterAll(() => server?.stop());

  async function expectNothingKept(what: string, count: number, come: (count: number) => Promise<void>): Promise<void> {
    await come(count * warmUpShare);
    const before = (await server.usedBytes()) / mebibyte;
    await come(count);
    const after = (await server.usedBytes()) / mebibyte;
    console.log(`${before.toFixed(1)} MiB in use before ${count} ${what}, ${after.toFixed(1)} MiB after them`);
    expect(after - before).toBeLessThan(maxGrowthMiB);
    expect(server.complaints).toBe('');
  }

  test(`${watches} watches leave nothing behind when they end`, async () => {
    await expectNothingKept('watches', watches, (count) => crowd.watches(count));
  });

  test(`${keepAliveStreams} keep-alive streams leave nothing behind when they end`, async () => {
    await expectNothingKept('keep-alive streams', keepAliveStreams, (count) => crowd.keepAliveStreams(count));
  });

  test(`${leases} granted and revoked leases leave nothing behind`, async () => {
    await expectNothingKept('leases', leases, (count) => crowd.leases(count));
  });
}
