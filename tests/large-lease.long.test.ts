import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { LargeWork } from './robustness/large-work.ts';
import { RenewalDelay, typicalDelayMs, type MeasuredDelay } from './robustness/renewal-delay.ts';
import { TestedServer } from './robustness/tested-server.ts';

const maxDelayMs = 100;
const rounds = { commit: 2, ci: 2, soak: 3 }[inject('effort')];
/** A short run uses smaller sizes where the preparation takes long. */
const share = { commit: 0.2, ci: 0.2, soak: 1 }[inject('effort')];

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

test('the revocation of a lease with 50,000 keys does not delay renewals for long', async () => {
  await expectShort('revoking a lease with 50,000 keys', () => work.revokeLease(50_000, 0));
});

test('nor does it with five watches on all of the keys', async () => {
  await expectShort('revoking a lease with 50,000 keys that five watch', () => work.revokeLease(50_000, 5));
});

test('nor the end of thousands of leases in the same second', async () => {
  const [leases, ttlMs] = [20_000 * share, 6_000 * Math.max(share, 0.5)];
  await expectShort(`the expiry of ${leases} leases`, () => work.expireLeases(leases, ttlMs));
});

test('nor the deletion of a range of 100,000 keys', async () => {
  await expectShort('deleting 100,000 keys', () => work.deleteRange(100_000));
});

test('nor a snapshot of many keys', async () => {
  const keys = 300_000 * share;
  await expectShort(`a snapshot of ${keys} keys`, () => work.takeSnapshots(keys));
});

test('nor a compaction of many revisions', async () => {
  const revisions = { commit: 40_000, ci: 40_000, soak: 500_000 }[inject('effort')];
  await expectShort(`compacting ${revisions} revisions`, () => work.compact(revisions, 5_000));
});
