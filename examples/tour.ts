// A tour of the library, on the memory backend:   node examples/dist/tour.js
import { subscribe } from 'node:diagnostics_channel';
import { AcquireTimeoutError, createLeaseManager, LeaseLostError } from 'tenure';
import type { LeaseEventMessage } from 'tenure';
import { memoryBackend } from 'tenure/memory';

async function reconcile(work: { signal: AbortSignal; fence: bigint }): Promise<void> {
  work.signal.throwIfAborted();
  console.log('reconciled with token', work.fence);
}

subscribe('tenure:lease:lost', (message) => {
  const { name, error } = message as LeaseEventMessage;
  console.log('lost:', name, error instanceof LeaseLostError ? error.reason : error);
});

const signal = AbortSignal.timeout(60_000);
const backend = memoryBackend();
await using leases = createLeaseManager({ backend, holder: 'pod-7', ttlMs: 30_000, releaseOn: ['SIGTERM', 'SIGINT'] });

// Waits in the queue, works, and releases at the end of the block.
{
  await using hold = await leases.acquire('nightly-reconcile', { wait: 'forever', signal });
  await reconcile({ signal: hold.signal, fence: hold.fencingToken });
}

// The same as a function, which also throws if the lease was lost before the work had ended.
const answer = await leases.withLease('nightly-reconcile', { wait: 'ttl' }, async (hold) => {
  const busy = await leases.tryAcquire('nightly-reconcile'); // excluded within the process, too
  return `${hold.holder} has it, and ${busy === null ? 'no other task' : 'another task'}`;
});
console.log(answer);

// A handle shares one hold with the whole process.
const handle = leases.requestLease('ingest');
handle.addListener({ afterLoss: (hold) => console.log(hold.name, 'is not ours any more') });
console.log('the same hold:', (await handle.acquire()) === (await leases.requestLease('ingest').acquire()));

// The current holder, as information for people.
console.log('held by', (await leases.inspect('ingest'))?.holder);
try {
  await leases.acquire('ingest', { wait: 20 });
} catch (error) {
  if (!(error instanceof AcquireTimeoutError)) throw error;
  console.log('gave up after', error.waitedMs, 'ms');
}

// Many readers or one writer, and a number of permits.
const settings = leases.readWriteLock('settings');
const readers = [await settings.read(), await settings.read()];
console.log('a writer beside', readers.length, 'readers:', await settings.tryWrite());
const permits = leases.semaphore('reports', 2);
const held = [await permits.acquire(), await permits.acquire()];
console.log('a third beside', held.length, 'permits:', await permits.tryAcquire());

// The entry is removed by force. The hold notices it at its next renewal, and its signal has the reason.
const ingest = handle.hold!;
await backend.leave(ingest.entry, signal);
await ingest.renew().catch((error: unknown) => console.log(String(error)));
console.log(
  'held:',
  ingest.isHeld(),
  'and aborted:',
  ingest.signal.aborted,
  'since it was',
  (await ingest.lost)?.reason,
);
