import { afterAll, beforeAll, expect, test } from 'vitest';
import { LargeReads } from './large-reads.ts';
import { RenewalDelay, typicalDelayMs, type MeasuredDelay } from './renewal-delay.ts';
import { TestedServer } from './tested-server.ts';

/** The bound of the benchmarks is 20 ms, on a quiet machine. */
const maxDelayMs = 100;
const maxRoundsFactor = 4;
/** A transaction may look at 50,000 keys. */
const txnRows = 49_000;

export interface LargeReadsSize {
  readonly keys: number;
  readonly leases: number;
  readonly rounds: number;
}

/** Registers the tests of one size: no read of a list of any length delays the renewals of other clients. */
export function testLargeReads({ keys, leases, rounds }: LargeReadsSize): void {
  let server: TestedServer;
  let delay: RenewalDelay;
  let reads: LargeReads;

  beforeAll(async () => {
    server = await TestedServer.start({ args: ['--quota-backend-bytes', String(2 ** 31)] });
    delay = await RenewalDelay.start(server);
    reads = await LargeReads.prepare(server, { keys, leases });
  }, 300_000);
  afterAll(async () => {
    await delay.stop();
    await server.stop();
  });

  async function expectShort(what: string, work: () => Promise<unknown>): Promise<void> {
    const measured: MeasuredDelay[] = [];
    const isLate = (): boolean => typicalDelayMs(what, measured) >= maxDelayMs;
    // What the server itself delays is in each round: more rounds help only against other load of the machine.
    while (measured.length < rounds || (measured.length < rounds * maxRoundsFactor && isLate())) {
      measured.push(await delay.during(work));
    }
    expect(typicalDelayMs(what, measured)).toBeLessThan(maxDelayMs);
  }

  test(`a range of ${keys} keys delays no renewal, with any options`, async () => {
    await expectShort('reading all keys', async () => {
      // Each row has a key of 13 bytes, a value and five numbers.
      expect(await reads.range({})).toBeGreaterThan(30 * keys);
    });
    await expectShort('reading all keys in other ways', async () => {
      await reads.range({ keysOnly: true });
      await reads.range({ sortTarget: 4, sortOrder: 2 });
      await reads.range({ sortTarget: 3, sortOrder: 2, limit: 1 });
      await reads.range({ countOnly: true });
      await reads.range({ limit: 1 });
    });
  });

  test(`nor do five lists of ${leases} leases, or one of the keys of a lease`, async () => {
    await expectShort('listing all leases five times', async () => {
      const bytes = await reads.listLeases(5);
      // An id takes at most five bytes here, and its frame three.
      expect(bytes).toBeLessThan(8 * leases + 1_000);
      expect(bytes).toBeGreaterThan(5 * leases);
    });
    await expectShort('listing the keys of a lease', async () => {
      expect(await reads.keysOfLease()).toBeGreaterThan(13 * keys);
    });
  });

  test('nor do transactions of the largest size or larger', async () => {
    await expectShort('the largest transaction', () => reads.largestTxn(Math.min(txnRows, keys)));
    await expectShort('refusing transactions of 1,920 ranges', async () => {
      await reads.attack(20, false);
      await reads.attack(20, true);
    });
    // It still leads in the first epoch, and continues to write.
    expect((await server.maintenance.status({})).raftTerm).toBe(1n);
    await server.kv.put({ key: Buffer.from('afterwards') });
  });
}
