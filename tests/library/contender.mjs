// A process that contends for one lease on commands of its parent. It reports events with the time of the machine's
// monotonic clock, which all processes share.
import { SeededRandom } from '@tenure/test-support';
import { createLeaseManager } from 'tenure';
import { openBackend } from './open-backend.mjs';

const { backend: spec, name, holder, ttlMs, turns, holdMs, seed } = JSON.parse(process.argv[2]);

const now = () => Number(process.hrtime.bigint()) / 1e6;
const random = new SeededRandom(seed);
const report = (what, fields = {}) => process.send({ what, holder, atMs: now(), ...fields });

const { backend, end } = await openBackend(spec, ttlMs);
const leases = createLeaseManager({ backend, holder, ttlMs });
let isAsked = true;
process.on('message', (message) => {
  if (message === 'enough') isAsked = false;
});
report('ready');

/** Checks the hold all the time, as work under a lease does before each step. */
async function workUnder(hold, acquiredMs) {
  const untilMs = now() + holdMs * (0.5 + random.next());
  let lastHeldMs = acquiredMs;
  // A lost lease ends the work at once; a paused process notices it at its first check.
  while (now() < untilMs) {
    const lookMs = now();
    if (!hold.isHeld()) break;
    lastHeldMs = lookMs;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return lastHeldMs;
}

for (let turn = 0; turn < turns && isAsked;) {
  let hold;
  try {
    hold = await leases.acquire(name);
  } catch (error) {
    report('failed', { message: error.message });
    await new Promise((resolve) => setTimeout(resolve, 50));
    continue;
  }
  const token = `${hold.fencingToken}`;
  turn++;
  let lostMs;
  hold.signal.addEventListener('abort', () => (lostMs = now()));
  // The parent may stop this process as soon as it gets the report.
  const acquiredMs = now();
  report('acquired', { token });
  const lastHeldMs = await workUnder(hold, acquiredMs);
  if (hold.isHeld()) {
    report('released', { token, lastHeldMs });
    await hold.release().catch((error) => report('failed', { message: error.message }));
  } else {
    report('lost', { token, lastHeldMs, lostMs, reason: hold.signal.reason?.reason });
    await hold.release().catch(() => undefined);
  }
}
await leases[Symbol.asyncDispose]().catch(() => undefined);
await end();
process.disconnect();
