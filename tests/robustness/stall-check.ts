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
 * What is done with a server that can spin, and with leases that are renewed in time. A client that was held up itself
 * while it renewed has shown nothing of the server: then all is done again.
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
      console.log(`the client was held up for ${Math.round(held.longestGapMs)} ms; it begins again`);
    } finally {
      held.close();
      await server.stop('SIGKILL');
    }
  }
  throw new Error(`the client was held up itself in each of ${attempts} attempts`);
}

/** Leases that are renewed in time, by a client that does not notice, outlive a stall of the server. */
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

/** Leases that nobody renews live as much longer as the stall lasted, and then die with their keys. */
export async function checkAbandonedThroughStall(kind: keyof typeof stalls, ttlMs: number): Promise<void> {
  await withHeldLeases(ttlMs, async (server, held) => {
    await delay(ttlMs);
    held.abandon();
    const stalled = stalls[kind](server);
    // Asked before the stall is over, so that it is answered as soon as it is, however busy the machine.
    await delay(stallMs / 2);
    const asked = held.keyCount();
    await stalled;
    // None of it counts against a lease: nobody could have renewed it.
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
