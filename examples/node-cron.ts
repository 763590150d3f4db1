// node-cron on several replicas, each run on one of them. One process plays both replicas:
//   node examples/dist/node-cron.js
import { schedule, shutdown } from 'node-cron';
import type { RunCoordinator, TaskContext } from 'node-cron';
import { createLeaseManager } from 'tenure';
import type { Hold, LeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';

/**
 * node-cron asks before each run, with a key of the task and the time for which the run is due. There is one lease for
 * each task, so that the backend gets no new name with every run. It is held while the task runs, and from its start
 * for `distributedLease` milliseconds at least: more than the replicas' clocks differ, less than the time between two
 * runs.
 */
function leaseCoordinator(leases: LeaseManager): RunCoordinator {
  const holds = new Map<string, Hold>();
  return {
    async shouldRun(key, holdAtLeastMs) {
      const name = `cron/${key.replace(/:\d{4}-\d\d-\d\dT[\d:.]+Z$/, '')}`;
      const hold = await leases.tryAcquire(name, { holdAtLeastMs });
      if (hold !== null) holds.set(key, hold);
      return hold !== null;
    },
    async onComplete(key) {
      const hold = holds.get(key);
      holds.delete(key);
      await hold?.release();
    },
  };
}

const backend = memoryBackend();
const runs: Date[] = [];

/** Starts one replica. The options name the task, so that its key is the same on every replica. */
function startReplica(holder: string, onRun: () => void): LeaseManager {
  const leases = createLeaseManager({ backend, holder });
  const clean = ({ date }: TaskContext): void => {
    runs.push(date);
    onRun();
  };
  const coordination = { distributed: true, distributedLease: 800, runCoordinator: leaseCoordinator(leases) };
  schedule('* * * * * *', clean, { name: 'clean-up', ...coordination });
  return leases;
}

const managers: LeaseManager[] = [];
await new Promise<void>((resolve) => {
  const onRun = (): void => void (runs.length >= 3 && resolve());
  for (const holder of ['replica-1', 'replica-2']) managers.push(startReplica(holder, onRun));
});
await shutdown(1_000);
console.log('no time was served twice:', new Set(runs.map(Number)).size === runs.length);
for (const manager of managers) await manager[Symbol.asyncDispose]();
