// A program that runs operations with leases one after another, and reports whether each keeps its process alive. It
// measures time by an unref'd timer, so that it prints no line when the process has ended. Arguments: as JSON the
// backend, `unref`, and whether all is done at once and never ended.
import { createLeaseManager } from 'tenure';
import { openBackend } from '../library/open-backend.mjs';

const { spec, unref, atOnce } = JSON.parse(process.argv[2]);
const ttlMs = 30_000;
/** Several of these programs share a backend without waiting for each other. */
const own = (name) => `${process.pid} ${name}`;
const tickMs = 50;
/** Much longer than a query of a backend, so that not its socket keeps the process alive. */
const ticksOfStaying = 6;
const ticksOfLingering = 100;

const { backend, end } = await openBackend(spec, ttlMs);
await backend.migrate?.();
// Other activity in this process must not keep it alive instead.
const others = createLeaseManager({ backend, holder: 'other', ttlMs, unref: true });
const leases = createLeaseManager({ backend, holder: 'one', ttlMs, ...(unref === undefined ? {} : { unref }) });

async function ticks(count) {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setTimeout(resolve, tickMs).unref());
}

const ignore = () => undefined;
const never = () => new Promise(ignore);

/** Each starts an operation and resolves with the function that ends it. */
const activities = {
  async hold() {
    const hold = await leases.acquire(own('hold'));
    return () => hold.release();
  },
  async wait() {
    const busy = await others.acquire(own('wait'));
    const stop = new AbortController();
    const waiting = leases.acquire(own('wait'), { signal: stop.signal }).catch(ignore);
    await until(async () => (await backend.list(`lease/${own('wait')}`, stop.signal)).length === 2);
    return async () => {
      stop.abort();
      await waiting;
      await busy.release();
    };
  },
  async work() {
    let finish;
    const started = new Promise((resolve) => {
      void leases.withLease(own('work'), {}, () => (resolve(), new Promise((done) => (finish = done))));
    });
    await started;
    return () => finish();
  },
  async election() {
    let finish;
    const running = leases.election(own('leader'));
    await new Promise((resolve) => {
      void running.run(() => (resolve(), new Promise((done) => (finish = done))));
    });
    return () => finish();
  },
  async standby() {
    const leader = await others.election(own('standby')).campaign('other');
    const stop = new AbortController();
    const running = leases.election(own('standby')).run(never, { signal: stop.signal }).catch(ignore);
    await until(async () => (await backend.list(`election/${own('standby')}`, stop.signal)).length === 2);
    return async () => {
      stop.abort();
      await running;
      await leader.resign();
    };
  },
  async ineligible() {
    const stop = new AbortController();
    const running = leases.election(own('ineligible'), { eligible: () => false });
    const ended = running.run(never, { signal: stop.signal }).catch(ignore);
    return async () => {
      stop.abort();
      await ended;
    };
  },
  async watch() {
    return await reading(leases.watch(own('watch'))[Symbol.asyncIterator]());
  },
  async observe() {
    return await reading(leases.election(own('observe')).observe()[Symbol.asyncIterator]());
  },
  async membership() {
    const membership = await leases.membership(own('group'));
    return () => membership[Symbol.asyncDispose]();
  },
  async follower() {
    const membership = await leases.membership(own('group'), { eligible: () => false });
    return () => membership[Symbol.asyncDispose]();
  },
};

async function reading(iterator) {
  await iterator.next();
  void iterator.next();
  return () => iterator.return();
}

async function until(isSo) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}

process.on('beforeExit', () => console.log('ends by itself'));

async function main() {
  for (const [name, begin] of Object.entries(activities)) {
    const finish = await begin();
    if (atOnce) continue;
    await ticks(ticksOfStaying);
    console.log(name);
    await finish();
  }
  // The operation ends only after it has noticed the abort of the signal.
  await others.inspect('nothing');
  console.log('all done');
  if (spec.endsPool) await end();
  await ticks(ticksOfLingering);
  console.log('lingers');
  process.exit(1);
}

void main();
