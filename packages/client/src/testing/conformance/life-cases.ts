import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { contains, pause } from './conformance-lab.ts';
import type { ConformanceCase, ConformanceLab } from './conformance-lab.ts';

const skewMs = 3_600_000;

/** How long an entry lives, and what a renewal does to it. */
export const lifeCases: readonly ConformanceCase[] = [
  {
    name: 'an entry lives for its ttl and not much longer',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const sentMs = performance.now();
      const key = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      await staysUntil(lab, key, sentMs + lab.shortTtlMs);
      await lab.untilGone(key, lab.backends[1]);
    },
  },
  {
    name: 'a renewal makes it live for the ttl of the renewal, from then on',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      let key: EntryKey;
      let sentMs: number;
      let isRenewed: boolean;
      do {
        const enteredMs = performance.now();
        key = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
        sentMs = performance.now();
        isRenewed = await lab.renew(key, 2 * lab.shortTtlMs, lab.backends[1]);
        // A machine that stood still for that long says nothing of the backend.
        assert.ok(isRenewed || performance.now() - enteredMs >= lab.shortTtlMs, 'it was gone before its time');
      } while (!isRenewed);
      assert.equal((await lab.list(name))[0]?.ttlMs, 2 * lab.shortTtlMs);
      await staysUntil(lab, key, sentMs + 2 * lab.shortTtlMs);
      await lab.untilGone(key);
    },
  },
  {
    name: 'renewed again and again it stays, in its place, with all that it had (etcd3 #155)',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const claim = lab.claim(name, { ttlMs: lab.shortTtlMs, data: 'first', mode: 'permit', permits: 3 });
      let sentMs = performance.now();
      const key = await lab.enter(claim);
      const behind = await lab.enter(lab.claim(name));
      for (
        const endMs = performance.now() + 2.5 * lab.shortTtlMs;
        performance.now() < endMs;
        await pause(lab.shortTtlMs / 6)
      ) {
        const lastSentMs = sentMs;
        sentMs = performance.now();
        const isRenewed = await lab.renew(key, lab.shortTtlMs, lab.backends[1]);
        // On a machine that stood still it may rightly have ended, and then stays so.
        if (!isRenewed && performance.now() - lastSentMs >= lab.shortTtlMs) return;
        assert.ok(isRenewed, 'gone though it was renewed in time');
      }
      const line = await lab.list(name);
      if (performance.now() - sentMs > lab.shortTtlMs) return;
      const [entry] = line;
      assert.deepEqual(
        line.map(({ ticket }) => ticket),
        [key.ticket, behind.ticket],
      );
      assert.deepEqual({ ...entry, expiresInMs: undefined }, { ...claim, ticket: key.ticket, expiresInMs: undefined });
    },
  },
  {
    name: 'a renewal with a shorter ttl shortens its life',
    isWaiting: true,
    async run(lab) {
      const key = await lab.enter(lab.claim(lab.name()));
      const sentMs = performance.now();
      assert.equal(await lab.renew(key, lab.shortTtlMs), true);
      await staysUntil(lab, key, sentMs + lab.shortTtlMs);
      await lab.untilGone(key, lab.backends[2]);
    },
  },
  {
    name: 'an entry lives as long as its own holder asked, whatever lives others have (kubernetes PR #114872)',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const long = await lab.enter(lab.claim(name));
      const short = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }), lab.backends[1]);
      await lab.untilGone(short, lab.backends[1]);
      assert.ok(contains(await lab.list(name, lab.backends[1]), long));
      assert.equal(await lab.renew(long, lab.longTtlMs), true);
    },
  },
  {
    name: 'gone is gone: who was seen to have expired is never renewed (etcd3 #13, redis-semaphore #175)',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      await lab.untilGone(key, lab.backends[1]);
      for (const backend of lab.backends) {
        assert.equal(await lab.renew(key, lab.longTtlMs, backend), false);
        assert.equal(await lab.update(key, 'again', backend), false);
        assert.equal(await lab.leave(key, backend), false);
        assert.deepEqual(await lab.list(name, backend), []);
      }
    },
  },
  {
    name: 'gone is gone: nor is one in whose place another was entered (ShedLock #2047, bull #1416)',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      let next: EntryKey | undefined;
      await lab.until('another one holds', async () => {
        const claim = lab.claim(name);
        const { ticket } = await lab.enterWith(claim, lab.backends[1], true);
        if (ticket !== undefined) next = { name, id: claim.id, ticket };
        return ticket !== undefined;
      });
      assert.ok(next !== undefined && next.ticket > key.ticket);
      assert.equal(await lab.renew(key, lab.longTtlMs), false);
      assert.equal(await lab.leave(key), false);
      assert.equal(await lab.update(key, 'late'), false);
      const line = await lab.list(name);
      assert.ok(line.length === 1 && contains(line, next), 'the line holds the next one and nobody else');
    },
  },
  {
    name: "a clock of the client's that is an hour off ends nobody's life (ShedLock #231, #132, #1241, client-go #448)",
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name));
      for (const offMs of [skewMs, -skewMs]) {
        const seen = await withWallClockOff(offMs, () => lab.list(name, lab.backends[1]));
        assert.ok(contains(seen, key), `a client whose clock is off by ${offMs} ms took it for ended`);
        const tried = await withWallClockOff(offMs, () => lab.enterWith(lab.claim(name), lab.backends[2], true));
        assert.equal(tried.ticket, undefined);
        assert.equal(await withWallClockOff(offMs, () => lab.renew(key, lab.longTtlMs, lab.backends[1])), true);
        assert.ok(contains(await lab.list(name), key));
      }
    },
  },
  {
    name: 'renewals of many entries are answered one by one, in their order (dynamodb-lock-client PR #116)',
    async run(lab) {
      const keys: EntryKey[] = [];
      for (let at = 0; at < 30; at++) keys.push(await lab.enter(lab.claim(lab.name()), lab.backends[at % 3]));
      const gone = keys.filter((_, at) => at % 5 === 1);
      for (const key of gone) assert.equal(await lab.leave(key), true);
      const strangers = keys.slice(0, 1).flatMap((key) => wrongKeys(lab, key));
      const asked = [...keys.slice(0, 15), ...strangers, ...keys.slice(15)];
      const flags = await renewAll(lab, asked, lab.backends[1]);
      assert.deepEqual(
        flags,
        asked.map((key) => !gone.includes(key) && !strangers.includes(key)),
      );
      assert.deepEqual(await lab.backends[0].renew([], lab.signal), []);
    },
  },
  {
    name: 'several hundred renewals go in one call',
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name));
      const asked = Array.from({ length: 400 }, (_, at) => (at === 250 ? key : { ...key, id: `nobody-${at}` }));
      const flags = await renewAll(lab, asked, lab.backends[0]);
      assert.deepEqual(
        flags.flatMap((flag, at) => (flag ? [at] : [])),
        [250],
      );
    },
  },
  {
    name: 'a renewal needs the name, the id and the ticket',
    async run(lab) {
      const key = await lab.enter(lab.claim(lab.name()));
      for (const wrong of wrongKeys(lab, key)) assert.equal(await lab.renew(wrong, lab.longTtlMs), false);
      assert.equal(await lab.renew({ ...key, ticket: 0n }, lab.longTtlMs), false);
      assert.equal(await lab.renew(key, lab.longTtlMs), true);
    },
  },
];

/** Every look whose answer came before `untilMs` shows it: later ones prove nothing. */
async function staysUntil(lab: ConformanceLab, key: EntryKey, untilMs: number): Promise<void> {
  for (let turn = 0; ; turn++) {
    const line = await lab.list(key.name, lab.backends[turn % lab.backends.length]);
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) return;
    assert.ok(contains(line, key), `gone ${leftMs} ms before its life was over`);
    await pause(Math.min(leftMs, 15));
  }
}

export function wrongKeys(lab: ConformanceLab, key: EntryKey): readonly EntryKey[] {
  return [
    { ...key, id: lab.claim(key.name).id },
    { ...key, ticket: key.ticket + 1n },
    { ...key, ticket: key.ticket - 1n === 0n ? key.ticket + 2n : key.ticket - 1n },
    { ...key, name: lab.name() },
  ];
}

function renewAll(lab: ConformanceLab, keys: readonly EntryKey[], backend: LeaseBackend): Promise<readonly boolean[]> {
  return backend.renew(
    keys.map((key) => ({ ...key, ttlMs: lab.longTtlMs })),
    lab.signal,
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
