import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { contains, pause } from './conformance-fixture.ts';
import type { ConformanceCase, ConformanceFixture } from './conformance-fixture.ts';

const skewMs = 3_600_000;

/** How long an entry lives, and what a renewal does to it. */
export const lifetimeCases: readonly ConformanceCase[] = [
  {
    name: 'an entry lives for its ttl and not much longer',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const sentMs = performance.now();
      const key = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      await staysUntil(fixture, key, sentMs + fixture.shortTtlMs);
      await fixture.untilGone(key, fixture.backends[1]);
    },
  },
  {
    name: 'a renewal makes it live for the ttl of the renewal, from then on',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      let key: EntryKey;
      let sentMs: number;
      let isRenewed: boolean;
      do {
        const enteredMs = performance.now();
        key = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
        sentMs = performance.now();
        isRenewed = await fixture.renew(key, 2 * fixture.shortTtlMs, fixture.backends[1]);
        // A machine that stood still for that long says nothing of the backend.
        assert.ok(isRenewed || performance.now() - enteredMs >= fixture.shortTtlMs, 'it was gone before its time');
      } while (!isRenewed);
      assert.equal((await fixture.list(name))[0]?.ttlMs, 2 * fixture.shortTtlMs);
      await staysUntil(fixture, key, sentMs + 2 * fixture.shortTtlMs);
      await fixture.untilGone(key);
    },
  },
  {
    name: 'renewed again and again it stays, in its place, with all that it had (etcd3 #155)',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const claim = fixture.claim(name, { ttlMs: fixture.shortTtlMs, data: 'first', mode: 'permit', permits: 3 });
      let sentMs = performance.now();
      const key = await fixture.enter(claim);
      const behind = await fixture.enter(fixture.claim(name));
      for (
        const endMs = performance.now() + 2.5 * fixture.shortTtlMs;
        performance.now() < endMs;
        await pause(fixture.shortTtlMs / 6)
      ) {
        const lastSentMs = sentMs;
        sentMs = performance.now();
        const isRenewed = await fixture.renew(key, fixture.shortTtlMs, fixture.backends[1]);
        // On a machine that stood still it may rightly have ended, and then stays so.
        if (!isRenewed && performance.now() - lastSentMs >= fixture.shortTtlMs) return;
        assert.ok(isRenewed, 'gone though it was renewed in time');
      }
      const queue = await fixture.list(name);
      if (performance.now() - sentMs > fixture.shortTtlMs) return;
      const [entry] = queue;
      assert.deepEqual(
        queue.map(({ sequence }) => sequence),
        [key.sequence, behind.sequence],
      );
      assert.deepEqual(
        { ...entry, expiresInMs: undefined },
        { ...claim, sequence: key.sequence, expiresInMs: undefined },
      );
    },
  },
  {
    name: 'a renewal with a shorter ttl shortens its life',
    isWaiting: true,
    async run(fixture) {
      const key = await fixture.enter(fixture.claim(fixture.name()));
      const sentMs = performance.now();
      assert.equal(await fixture.renew(key, fixture.shortTtlMs), true);
      await staysUntil(fixture, key, sentMs + fixture.shortTtlMs);
      await fixture.untilGone(key, fixture.backends[2]);
    },
  },
  {
    name: 'an entry lives as long as its own holder asked, whatever lives others have (kubernetes PR #114872)',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const long = await fixture.enter(fixture.claim(name));
      const short = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }), fixture.backends[1]);
      await fixture.untilGone(short, fixture.backends[1]);
      assert.ok(contains(await fixture.list(name, fixture.backends[1]), long));
      assert.equal(await fixture.renew(long, fixture.longTtlMs), true);
    },
  },
  {
    name: 'gone is gone: an entry that was seen to have expired is never renewed (etcd3 #13, redis-semaphore #175)',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      await fixture.untilGone(key, fixture.backends[1]);
      for (const backend of fixture.backends) {
        assert.equal(await fixture.renew(key, fixture.longTtlMs, backend), false);
        assert.equal(await fixture.update(key, 'again', backend), false);
        assert.equal(await fixture.leave(key, backend), false);
        assert.deepEqual(await fixture.list(name, backend), []);
      }
    },
  },
  {
    name: 'gone is gone: nor is one in whose place another was entered (ShedLock #2047, bull #1416)',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      let next: EntryKey | undefined;
      await fixture.until('another one holds', async () => {
        const claim = fixture.claim(name);
        const { sequence } = await fixture.enterWith(claim, fixture.backends[1], true);
        if (sequence !== undefined) next = { name, id: claim.id, sequence };
        return sequence !== undefined;
      });
      assert.ok(next !== undefined && next.sequence > key.sequence);
      assert.equal(await fixture.renew(key, fixture.longTtlMs), false);
      assert.equal(await fixture.leave(key), false);
      assert.equal(await fixture.update(key, 'late'), false);
      const queue = await fixture.list(name);
      assert.ok(queue.length === 1 && contains(queue, next), 'the queue has only the next entry');
    },
  },
  {
    name: 'a client whose wall clock is an hour off expires no entry (ShedLock #231, #132, #1241, client-go #448)',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name));
      for (const offMs of [skewMs, -skewMs]) {
        const seen = await withWallClockOff(offMs, () => fixture.list(name, fixture.backends[1]));
        assert.ok(contains(seen, key), `a client whose clock is off by ${offMs} ms took it for ended`);
        const tried = await withWallClockOff(offMs, () =>
          fixture.enterWith(fixture.claim(name), fixture.backends[2], true),
        );
        assert.equal(tried.sequence, undefined);
        assert.equal(
          await withWallClockOff(offMs, () => fixture.renew(key, fixture.longTtlMs, fixture.backends[1])),
          true,
        );
        assert.ok(contains(await fixture.list(name), key));
      }
    },
  },
  {
    name: 'renewals of many entries are answered one by one, in their order (dynamodb-lock-client PR #116)',
    async run(fixture) {
      const keys: EntryKey[] = [];
      for (let at = 0; at < 30; at++)
        keys.push(await fixture.enter(fixture.claim(fixture.name()), fixture.backends[at % 3]));
      const gone = keys.filter((_, at) => at % 5 === 1);
      for (const key of gone) assert.equal(await fixture.leave(key), true);
      const strangers = keys.slice(0, 1).flatMap((key) => wrongKeys(fixture, key));
      const asked = [...keys.slice(0, 15), ...strangers, ...keys.slice(15)];
      const flags = await renewAll(fixture, asked, fixture.backends[1]);
      assert.deepEqual(
        flags,
        asked.map((key) => !gone.includes(key) && !strangers.includes(key)),
      );
      assert.deepEqual(await fixture.backends[0].renew([], fixture.signal), []);
    },
  },
  {
    name: 'several hundred renewals go in one call',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name));
      const asked = Array.from({ length: 400 }, (_, at) => (at === 250 ? key : { ...key, id: `other-${at}` }));
      const flags = await renewAll(fixture, asked, fixture.backends[0]);
      assert.deepEqual(
        flags.flatMap((flag, at) => (flag ? [at] : [])),
        [250],
      );
    },
  },
  {
    name: 'a renewal needs the name, the id and the sequence number',
    async run(fixture) {
      const key = await fixture.enter(fixture.claim(fixture.name()));
      for (const wrong of wrongKeys(fixture, key)) assert.equal(await fixture.renew(wrong, fixture.longTtlMs), false);
      assert.equal(await fixture.renew({ ...key, sequence: 0n }, fixture.longTtlMs), false);
      assert.equal(await fixture.renew(key, fixture.longTtlMs), true);
    },
  },
];

/** Every look whose answer came before `untilMs` shows it: later ones prove nothing. */
async function staysUntil(fixture: ConformanceFixture, key: EntryKey, untilMs: number): Promise<void> {
  for (let turn = 0; ; turn++) {
    const queue = await fixture.list(key.name, fixture.backends[turn % fixture.backends.length]);
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) return;
    assert.ok(contains(queue, key), `gone ${leftMs} ms before its life was over`);
    await pause(Math.min(leftMs, 15));
  }
}

export function wrongKeys(fixture: ConformanceFixture, key: EntryKey): readonly EntryKey[] {
  return [
    { ...key, id: fixture.claim(key.name).id },
    { ...key, sequence: key.sequence + 1n },
    { ...key, sequence: key.sequence - 1n === 0n ? key.sequence + 2n : key.sequence - 1n },
    { ...key, name: fixture.name() },
  ];
}

function renewAll(
  fixture: ConformanceFixture,
  keys: readonly EntryKey[],
  backend: LeaseBackend,
): Promise<readonly boolean[]> {
  return backend.renew(
    keys.map((key) => ({ ...key, ttlMs: fixture.longTtlMs })),
    fixture.signal,
  );
}

/** What this process takes for the time of day is off while the call is sent and answered. */
async function withWallClockOff<T>(offMs: number, call: () => Promise<T>): Promise<T> {
  const RealDate = globalThis.Date;
  class OffDate extends RealDate {
    constructor(...given: readonly unknown[]) {
      if (given.length === 0) super(RealDate.now() + offMs);
      else super(...(given as [number]));
    }

    static override now(): number {
      return RealDate.now() + offMs;
    }
  }
  globalThis.Date = OffDate as DateConstructor;
  try {
    return await call();
  } finally {
    globalThis.Date = RealDate;
  }
}
