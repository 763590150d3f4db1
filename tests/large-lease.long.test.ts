import { afterAll, beforeAll, expect, it } from 'vitest';
import { LargeWork } from './robustness/large-work.ts';
import { RenewalDelay, typicalDelayMs, type MeasuredDelay } from './robustness/renewal-delay.ts';
import { TestedServer } from './robustness/tested-server.ts';

const maxDelayMs = 100;
const rounds = 3;

let server: TestedServer;
let delay: RenewalDelay;
let work: LargeWork;

beforeAll(async () => {
  server = await TestedServer.start({ args: ['--quota-backend-bytes', String(2 ** 31)] });
  delay = await RenewalDelay.start(server);
  work = new LargeWork(server, delay);
});
afterAll(async () => {
  await delay.stop();
  await server.stop();
});

async function expectShort(what: string, measure: () => Promise<MeasuredDelay>): Promise<void> {
  const measured: MeasuredDelay[] = [];
  for (let round = 0; round < rounds; round += 1) measured.push(await measure());
  expect(typicalDelayMs(what, measured)).toBeLessThan(maxDelayMs);
}

it('the revocation of a lease with 50,000 keys holds up no renewal for long', async () => {
  await expectShort('revoking a lease with 50,000 keys', () => work.revokeLease(50_000, 0));
});

it('nor does it with five watches on all of the keys', async () => {
  await expectShort('revoking a lease with 50,000 keys that five watch', () => work.revokeLease(50_000, 5));
});

it('nor the end of 20,000 leases in the same second', async () => {
  await expectShort('the expiry of 20,000 leases', () => work.expireLeases(20_000, 6_000));
});

it('nor the deletion of a range of 100,000 keys', async () => {
  await expectShort('deleting 100,000 keys', () => work.deleteRange(100_000));
});

it('nor a snapshot of 300,000 keys', async () => {
  await expectShort('a snapshot of 300,000 keys', () => work.takeSnapshots(300_000));
});

it('nor a compaction of 500,000 revisions', async () => {
  await expectShort('compacting 500,000 revisions', () => work.compact(500_000, 5_000));
});
