import { VirtualClock } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { HashQueue, maxWaitingHashes } from './hash-queue.ts';

const hashMs = 100;
const neverAborts = (): AbortSignal => new AbortController().signal;

interface Login {
  readonly client: string;
  readonly right?: boolean;
  readonly sharing?: string;
  readonly signal?: AbortSignal;
}

function setUp() {
  const clock = new VirtualClock();
  const queue = new HashQueue(clock);
  const hashes = { count: 0, running: 0, most: 0 };
  const derive = async (): Promise<Buffer> => {
    hashes.count += 1;
    hashes.running += 1;
    hashes.most = Math.max(hashes.most, hashes.running);
    await new Promise<void>((resolve) => clock.after(hashMs, resolve));
    hashes.running -= 1;
    return Buffer.alloc(32);
  };
  /** Resolves with the milliseconds that it took. */
  const login = async ({ client, right = true, sharing, signal = neverAborts() }: Login): Promise<number> => {
    const beganMs = clock.monotonicMs();
    expect(await queue.run({ client, sharing, signal, derive }, () => right)).toBe(right);
    return clock.monotonicMs() - beganMs;
  };
  return { clock, queue, hashes, login };
}

test('a client that guesses a thousand times delays the login of another by two hashes at most', async () => {
  const { clock, queue, hashes, login } = setUp();
  const guesses = Array.from({ length: 1000 }, () => login({ client: '10.0.0.66', right: false }));
  const refused = Promise.allSettled(guesses).then((all) => all.filter(({ status }) => status === 'rejected').length);
  await clock.advance(hashMs / 2);
  expect(queue.size).toBe(999);
  for (let i = 0; i < 20; i += 1) {
    expect(await clock.run(login({ client: '10.0.0.1' }), 1000)).toBeLessThanOrEqual(3 * hashMs);
  }
  // Ten minutes of guessing: the first few at once, then one every 5 s.
  const before = hashes.count;
  await clock.advance(600_000);
  expect(hashes.count - before).toBeLessThan(125);
  expect(hashes.count - before).toBeGreaterThan(110);
  expect(hashes.most).toBe(1);
  queue.stop();
  expect(await refused).toBeGreaterThan(800);
  expect(clock.timers).toBe(0);
});

test('a success between the guesses makes up for none of them', async () => {
  const { clock, login } = setUp();
  const guesser = '10.0.0.66';
  for (let i = 0; i < 12; i += 1) {
    await clock.run(login({ client: guesser, right: false }), 10_000);
    const tookMs = await clock.run(login({ client: guesser }), 10_000);
    if (i >= 10) expect(tookMs).toBe(5_000 + hashMs);
  }
  expect(await clock.run(login({ client: '10.0.0.1' }), 10_000)).toBe(hashMs);
});

test('addresses of one IPv6 network are one client', async () => {
  const { clock, login } = setUp();
  for (let i = 0; i < 12; i += 1) {
    await clock.run(login({ client: `2001:db8::${i}`, right: false }), 10_000);
  }
  expect(await clock.run(login({ client: '2001:db8::ffff' }), 10_000)).toBeGreaterThan(4_000);
  expect(await clock.run(login({ client: '2001:db8:0:1::1' }), 10_000)).toBe(hashMs);
});

test('a thousand programs that log in with the same password have one hash', async () => {
  const { clock, hashes, login } = setUp();
  const first = login({ client: '10.1.0.0', sharing: 'ada' });
  const others = Array.from({ length: 999 }, (_, i) => login({ client: `10.0.${i >> 8}.${i & 255}`, sharing: 'ada' }));
  const took = await clock.run(Promise.all([first, ...others]), 1000);
  expect(Math.max(...took)).toBe(hashMs);
  expect(hashes.count).toBe(1);
});

test('a client that is slowed down gets no answer sooner by a shared hash, and counts its failures', async () => {
  const { clock, login } = setUp();
  for (let i = 0; i < 12; i += 1) await clock.run(login({ client: 'guesser', right: false }), 10_000);
  const busy = login({ client: 'a' });
  const shared = Array.from({ length: 12 }, () => login({ client: 'b', right: false, sharing: 'x' }));
  await clock.run(Promise.all([busy, ...shared]), 10_000);
  expect(await clock.run(login({ client: 'b' }), 10_000)).toBeGreaterThan(4_000);
});

test('each client finds room, however many others flood the queue', async () => {
  const { clock, queue, login } = setUp();
  const flood = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: 200 }, () => login({ client: `10.0.0.${i}`, right: false })),
  );
  const settled = Promise.allSettled(flood.flat());
  expect(queue.size).toBe(maxWaitingHashes);
  const own = login({ client: '10.0.1.1' });
  expect(queue.size).toBe(maxWaitingHashes);
  expect(await clock.run(own, 60_000)).toBeLessThanOrEqual(22 * hashMs);
  queue.stop();
  await clock.advance(hashMs);
  const rejected = (await settled).flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []));
  expect(rejected.filter(({ message }) => message === 'etcdserver: too many requests').length).toBeGreaterThan(2900);
  await expect(login({ client: 'late' })).rejects.toMatchObject({ code: 14, message: 'etcdserver: server stopped' });
});

test('a client that left has no hash', async () => {
  const { clock, queue, hashes, login } = setUp();
  const leaving = new AbortController();
  const stays = login({ client: 'a' });
  const left = Promise.allSettled([
    login({ client: 'a', signal: leaving.signal, sharing: 'x' }),
    login({ client: 'b', signal: leaving.signal }),
  ]);
  leaving.abort();
  expect(queue.size).toBe(0);
  expect((await left).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(login({ client: 'c', signal: leaving.signal })).rejects.toMatchObject({ code: 1 });
  await clock.run(stays, 1000);
  expect(hashes.count).toBe(1);
});

test('a hash that fails refuses its own job, and the queue goes on', async () => {
  const { clock, queue, login } = setUp();
  const derive = (): Promise<Buffer> => Promise.reject(new Error('no memory'));
  const failing = queue.run({ client: 'a', sharing: undefined, signal: neverAborts(), derive }, () => true);
  await expect(failing).rejects.toThrow('no memory');
  expect(await clock.run(login({ client: 'a' }), 1000)).toBe(hashMs);
});
