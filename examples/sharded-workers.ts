// Workers divide the shards of a queue among them, each shard to one worker at a time. One process plays all parts:
// node examples/dist/sharded-workers.js
import { setTimeout as pause } from 'node:timers/promises';
import { createLeaseManager, loadBalanced } from 'tenure';
import type { LeaseHandle, Membership } from 'tenure';
import { memoryBackend } from 'tenure/memory';

const backend = memoryBackend(); // shared by all workers; several processes need a database or a lease server
const shards = Array.from({ length: 12 }, (_, at) => `shard-${at + 1}`);

/** One worker, until the signal aborts. Disposing runs backwards: its shards, its membership, the manager. */
async function worker(name: string, signal: AbortSignal): Promise<void> {
  await using manager = createLeaseManager({ backend, holder: name });
  await using membership = await manager.membership('workers');
  await using leases = loadBalanced(manager, membership);
  const keepers = shards.map((shard) => keep(leases.requestLease(shard), membership, signal));
  await Promise.all(keepers).catch((error: unknown) => {
    if (error !== signal.reason) throw error;
  });
}

/** Checks again whenever the group has changed, and processes the shard while it belongs to this worker. */
async function keep(lease: LeaseHandle, membership: Membership, signal: AbortSignal): Promise<void> {
  for await (const _ of membership.watch({ signal })) {
    while (lease.shouldHold()) {
      // The previous owner may still be finishing its work.
      const hold = await lease.acquire({ wait: 'forever', signal });
      if (hold !== null) await consume(lease.name, AbortSignal.any([hold.signal, signal]));
    }
  }
}

async function consume(_shard: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await pause(20); // one message of the shard after another
}

await using observer = createLeaseManager({ backend, holder: 'observer' });
await using group = await observer.membership('workers', { eligible: () => false });

/** The owner of each shard, once this many workers have joined and each holds its own shards. */
async function settled(workers: number): Promise<string[]> {
  for await (const { snapshot } of group.watch()) if (snapshot.members.length === workers) break;
  const owners = shards.map((shard) => group.owner(shard).id);
  for (const [at, shard] of shards.entries()) {
    for await (const info of observer.watch(shard)) if (info?.holder === owners[at]) break;
  }
  return owners;
}

const [third, others] = [new AbortController(), new AbortController()];
const running = [worker('worker-1', others.signal), worker('worker-2', others.signal)];
const leaving = worker('worker-3', third.signal);
const before = await settled(3);
console.log('shared out over', new Set(before).size, 'workers');

third.abort();
await leaving;
const after = await settled(2);
const moved = shards.filter((_, at) => after[at] !== before[at]);
console.log(
  'only those of worker-3 moved:',
  moved.every((shard) => before[shards.indexOf(shard)] === 'worker-3'),
);
console.log('all are taken care of by', [...new Set(after)].sort().join(' and '));

others.abort();
await Promise.all(running);
