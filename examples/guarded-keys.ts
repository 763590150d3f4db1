// A holder is blocked for longer than its lease, and another one takes over. When the first one continues, its write is
// refused by the server that stores the leases, Tenure's or etcd:   ENDPOINT=127.0.0.1:2379 node
// examples/dist/guarded-keys.js
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { createLeaseManager } from 'tenure';
import type { Hold } from 'tenure';
import { etcdBackend, EtcdClient, operation } from 'tenure/etcd';
import { requireGuarded } from 'tenure/guard';

const etcd = new EtcdClient({ endpoints: process.env['ENDPOINT'] ?? '127.0.0.1:2379' });
const backend = etcdBackend({ client: etcd });

/** The guard is a condition of the transaction: the entry of this hold exists. */
async function setState(hold: Hold, state: string): Promise<void> {
  const { succeeded } = await etcd.kv.txn().if(backend.guard(hold)).do(operation.put('jobs/1', state)).commit();
  requireGuarded(succeeded, hold);
}

async function standsStill(): Promise<void> {
  await using leases = createLeaseManager({ backend, holder: 'first', ttlMs: 5_000 });
  const hold = await leases.acquire('job-1');

  // No timer, no renewal and no signal of this thread gets through until the other one has done its work.
  const isDone = new Int32Array(new SharedArrayBuffer(4));
  const ended = once(new Worker(new URL(import.meta.url), { workerData: isDone }), 'exit');
  Atomics.wait(isDone, 0, 0);

  console.log('the first woke up, and knows when it looks:', !hold.isHeld());
  await setState(hold, 'ended by the first').catch((error: unknown) => console.log('its key:', String(error)));
  console.log((await etcd.kv.getOne('jobs/1'))?.value);
  await ended;
}

async function takesOver(isDone: Int32Array): Promise<void> {
  await using leases = createLeaseManager({ backend, holder: 'second' });
  await using hold = await leases.acquire('job-1');
  await setState(hold, 'ended by the second');
  Atomics.store(isDone, 0, 1);
  Atomics.notify(isDone, 0);
}

if (isMainThread) await standsStill();
else await takesOver(workerData as Int32Array);
etcd.close();
