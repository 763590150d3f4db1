import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { StallMeter } from '../cluster/stall-meter.ts';
import { HeldLeases } from './held-leases.ts';
import { stallMs, stalls } from './stalls.ts';
import { TestedServer } from './tested-server.ts';

const heldLeases = inject('effort') === 'soak' ? 300 : 100;
const streams = 6;
const attempts = 5;
const patienceMs = 60_000;

type Use = (server: TestedServer, held: HeldLeases) => Promise<void>;

/**
 * Tests a server with the hook `spin` and leases that are renewed in time. If the client itself was delayed while it
 * renewed, the attempt proves nothing about the server and is repeated.
 */
async function withHeldLeases(ttlMs: number, use: Use): Promise<void> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const server = await TestedServer.start({ hook: 'spin', env: { SPIN_MS: String(stallMs) } });
    const held = new HeldLeases(server, { count: heldLeases, ttlMs, streams });
    try {
      await held.take();
      await use(server, held);
      return;
    } catch (error) {
      if (!held.wasHeldUp) throw error;
      console.log(`the client was delayed by ${Math.round(held.longestGapMs)} ms; the attempt is repeated`);
    } finally {
      held.close();
      await server.stop('SIGKILL');
    }
  }
  throw new Error(`the client itself was delayed in each of ${attempts} attempts`);
}

/** Leases survive a stall of the server if a client renews them in time without noticing the stall. */
export async function checkRenewedThroughStall(kind: keyof typeof stalls, ttlMs: number): Promise<void> {
  await withHeldLeases(ttlMs, async (server, held) => {
    await delay(ttlMs);
    const answersBefore = held.answers;
    await stalls[kind](server);
    await delay(2 * ttlMs);
    expect(held.answers - answersBefore).toBeGreaterThan(heldLeases);
    expect([...held.refused]).toEqual([]);
    expect(await held.keyCount()).toBe(heldLeases);
    expect(await server.metric('tenure_lease_expired_total')).toBe(0);
  });
}

/** Leases that are not renewed live longer by the length of the stall, and then expire with their keys. */
export async function checkAbandonedThroughStall(kind: keyof typeof stalls, ttlMs: number): Promise<void> {
  await withHeldLeases(ttlMs, async (server, held) => {
    await delay(ttlMs);
    held.abandon();
    const stalled = stalls[kind](server);
    // Requested before the stall is over, so that it is answered right after the stall, also on a busy machine.
    await delay(stallMs / 2);
    const asked = held.keyCount();
    await stalled;
    // None of it counts against a lease: no client could have renewed it.
    expect(await asked).toBe(heldLeases);
    const meter = new StallMeter(() => [server.process.pid]);
    const fromMs = performance.now();
    expect(await server.settled('tenure_keys', 0, patienceMs)).toBe(0);
    const toMs = performance.now();
    expect(toMs - fromMs).toBeLessThan(2 * ttlMs + meter.between(fromMs, toMs));
    meter.stop();
    expect(await server.metric('tenure_lease_expired_total')).toBe(heldLeases);
  });
}
