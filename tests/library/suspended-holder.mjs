// A process that acquires a lease and checks its hold on command, or after a pause. It reports the result of its first
// check, before any other code could run.
import { createLeaseManager } from 'tenure';
import { openBackend } from './open-backend.mjs';

const { backend: spec, name, ttlMs, autoRenew } = JSON.parse(process.argv[2]);
const { backend, end } = await openBackend(spec, ttlMs);
const leases = createLeaseManager({ backend, holder: 'suspended', ttlMs });
const hold = await leases.acquire(name, { autoRenew });
let aborts = 0;
hold.signal.addEventListener('abort', () => aborts++);

function look() {
  const isHeld = hold.isHeld();
  const { aborted, reason } = hold.signal;
  process.send({ isHeld, aborted, aborts, error: reason?.name, reason: reason?.reason, token: `${hold.fencingToken}` });
}

process.on('message', async ({ what, blockMs = 0 }) => {
  if (what === 'end') {
    await leases[Symbol.asyncDispose]().catch(() => undefined);
    await end();
    process.disconnect();
    return;
  }
  // The process is blocked meanwhile: no timer and no answer of the store, as on a suspended machine.
  if (blockMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockMs);
  look();
});
look();
