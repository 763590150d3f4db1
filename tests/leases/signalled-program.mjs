// A program that uses leases and is ended by a signal. Beside the requested activity it holds an idle lease. It catches
// errors only if it is told to. Arguments: as JSON the backend, the activity, `releaseOn`, and how it deals with
// errors, signals and a backend.
import { createLeaseManager } from 'tenure';
import { openBackend } from '../library/open-backend.mjs';

const { spec, activity, releaseOn, exits, listens, hangs, slowly } = JSON.parse(process.argv[2]);
const ttlMs = 60_000;

const { backend } = await openBackend(spec, ttlMs);
await backend.migrate?.();
const leave = backend.leave.bind(backend);
let beginLeaving;
const leaving = new Promise((resolve) => (beginLeaving = resolve));
backend.leave = async (...given) => {
  console.log('leaving');
  beginLeaving();
  if (hangs) return await new Promise(() => {});
  // Time in which work that was told too early could end the process.
  await new Promise((resolve) => setTimeout(resolve, 100));
  return await leave(...given);
};
const others = createLeaseManager({ backend, holder: 'other', ttlMs });
const leases = createLeaseManager({ backend, holder: 'one', ttlMs, releaseOn });
if (slowly) {
  // Another manager of this process, which needs longer to release.
  const slow = createLeaseManager({ backend, holder: 'slow', ttlMs, releaseOn });
  slow.addListener({ beforeRelease: () => console.log('slow') });
  await slow.acquire('slow');
  void slow.withLease('slow work', {}, async (hold) => {
    await new Promise((resolve) => hold.signal.addEventListener('abort', resolve, { once: true }));
    await new Promise((resolve) => setTimeout(resolve, 300));
  });
}
if (listens) {
  process.on('SIGTERM', () => {
    console.log('heard');
    setInterval(() => {}, 1_000);
  });
}

const aborted = (signal) => {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
};

const activities = {
  hold: async () => {
    const hold = await leases.acquire('work');
    console.log('ready');
    await aborted(hold.signal);
  },
  disposed: async () => {
    const hold = await leases.acquire('work');
    try {
      console.log('ready');
      await aborted(hold.signal);
    } finally {
      await hold[Symbol.asyncDispose]();
    }
  },
  wait: async () => {
    await others.acquire('busy');
    setTimeout(() => console.log('ready'), 100);
    await leases.acquire('busy');
  },
  poll: async () => {
    for (let turn = 0; ; turn++) {
      if (turn === 5) console.log('ready');
      await leases.inspect('work');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },
  work: () => leases.withLease('work', {}, async (hold) => (console.log('ready'), await aborted(hold.signal))),
  nested: () => {
    return leases.withLease('work', {}, async () => {
      await others.acquire('busy');
      console.log('ready');
      await leases.acquire('busy');
    });
  },
  election: () => leases.election('leader').run(async (_, signal) => (console.log('ready'), await aborted(signal))),
  watch: async () => {
    for await (const _ of leases.watch('watched')) console.log('ready');
  },
  membership: async () => {
    const membership = await leases.membership('group');
    for await (const _ of membership.watch()) console.log('ready');
  },
  own: async () => {
    console.log('ready');
    await leaving;
    throw new RangeError('of the program');
  },
};

await leases.acquire('plain');
const main = activities[activity]();
if (exits) {
  main.catch((error) => {
    console.log(`caught ${error.name}`);
    process.exit(1);
  });
}
