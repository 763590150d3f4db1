import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { HeldLeases } from './held-leases.ts';
import { stallMs, stalls } from './stalls.ts';
import { TestedServer } from './tested-server.ts';

const heldLeases = 300;
const streams = 6;
/** Beyond this the renewing client was itself held up, and a lost lease would say nothing about the server. */
const maxGapShare = 0.8;

/** Leases that are renewed in time, by a client that does not notice, outlive a stall of the server. */
export async function checkRenewedThroughStall(kind: keyof typeof stalls, ttlMs: number): Promise<void> {
  const server = await TestedServer.start({ hook: 'spin', env: { SPIN_MS: String(stallMs) } });
  const held = await HeldLeases.take(server, { count: heldLeases, ttlMs, streams });
  try {
    await delay(ttlMs);
    const answersBefore = held.answers;
    await stalls[kind](server);
    await delay(2 * ttlMs);
    expect(held.longestGapMs, 'the client was held up itself').toBeLessThan(ttlMs * maxGapShare);
    expect(held.answers - answersBefore).toBeGreaterThan(heldLeases);
    expect([...held.refused]).toEqual([]);
    expect(await held.keyCount()).toBe(heldLeases);
    expect(await server.metric('tenure_lease_expired_total')).toBe(0);
  } finally {
    held.close();
    await server.stop('SIGKILL');
  }
}

/** Leases that nobody renews live as much longer as the stall lasted, and then die with their keys. */
export async function checkAbandonedThroughStall(kind: keyof typeof stalls, ttlMs: number): Promise<void> {
  const server = await TestedServer.start({ hook: 'spin', env: { SPIN_MS: String(stallMs) } });
  const held = await HeldLeases.take(server, { count: heldLeases, ttlMs, streams });
  try {
    await delay(ttlMs);
    held.abandon();
    await stalls[kind](server);
    // None of it counts against a lease: nobody could have renewed it.
    expect(await held.keyCount()).toBe(heldLeases);
    expect(await server.settled('tenure_keys', 0, 2 * ttlMs)).toBe(0);
    expect(await server.metric('tenure_lease_expired_total')).toBe(heldLeases);
  } finally {
    held.close();
    await server.stop('SIGKILL');
  }
}
