import assert from 'node:assert/strict';
import { holders } from '../../backend/standing.ts';
import { contains, pause } from './conformance-lab.ts';
import type { ConformanceCase } from './conformance-lab.ts';
import { wrongKeys } from './life-cases.ts';

/** Leaving and changing data: what they touch, and what everybody sees of them at once. */
export const endingCases: readonly ConformanceCase[] = [
  {
    name: 'leaving ends the entry, once, through any backend',
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name));
      const behind = await lab.enter(lab.claim(name), lab.backends[1]);
      assert.equal(await lab.leave(key, lab.backends[2]), true);
      for (const backend of lab.backends) {
        assert.equal(await lab.leave(key, backend), false);
        const line = await lab.list(name, backend);
        assert.ok(line.length === 1 && contains(line, behind));
      }
    },
  },
  {
    name: 'one that left is not renewed back to life (dynamodb-lock-client tristanls #1)',
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name));
      await lab.leave(key);
      for (const backend of lab.backends) {
        assert.equal(await lab.renew(key, lab.longTtlMs, backend), false);
        assert.equal(await lab.update(key, 'again', backend), false);
        assert.deepEqual(await lab.list(name, backend), []);
      }
    },
  },
  {
    name: 'leaving needs the name, the id and the ticket (ShedLock #2047)',
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name, { holder: 'one of two' }));
      const other = await lab.enter(lab.claim(name, { holder: 'one of two' }));
      for (const wrong of wrongKeys(lab, key)) assert.equal(await lab.leave(wrong), false);
      assert.equal(await lab.leave({ ...key, ticket: other.ticket }), false);
      const line = await lab.list(name);
      assert.ok(line.length === 2 && contains(line, key) && contains(line, other));
    },
  },
  {
    name: "the late release of one that expired leaves the next holder alone (Misk's release ABA)",
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const expired = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      await lab.untilGone(expired);
      const second = await lab.enter(lab.claim(name), lab.backends[1]);
      assert.equal(await lab.leave(second, lab.backends[1]), true);
      const third = await lab.enter(lab.claim(name), lab.backends[2]);
      assert.equal(await lab.leave(expired), false);
      assert.ok(contains(await lab.list(name), third));
    },
  },
  {
    name: 'who does not know its ticket leaves by its id and the ticket 0',
    async run(lab) {
      const name = lab.name();
      const other = await lab.enter(lab.claim(name));
      const key = await lab.enter(lab.claim(name));
      assert.equal(await lab.leave({ ...key, ticket: 0n, id: lab.claim(name).id }), false);
      assert.equal(await lab.leave({ ...key, ticket: 0n, name: lab.name() }), false);
      assert.equal(await lab.leave({ ...key, ticket: 0n }, lab.backends[1]), true);
      assert.equal(await lab.leave({ ...key, ticket: 0n }), false);
      const line = await lab.list(name);
      assert.ok(line.length === 1 && contains(line, other));
    },
  },
  {
    name: 'leaving while it is being renewed ends it, and is no loss to anybody else (redis-semaphore #205, #206)',
    async run(lab) {
      for (let round = 0; round < lab.rounds(10); round++) {
        const name = lab.name();
        const key = await lab.enter(lab.claim(name));
        const other = await lab.enter(lab.claim(name));
        const [left] = await Promise.all([
          lab.leave(key, lab.backends[0]),
          lab.renew(key, lab.longTtlMs, lab.backends[1]),
          lab.renew(key, lab.longTtlMs, lab.backends[2]),
        ]);
        assert.equal(left, true);
        const line = await lab.list(name, lab.backends[round % 3]);
        assert.ok(line.length === 1 && contains(line, other));
        assert.equal(await lab.renew(other, lab.longTtlMs), true);
      }
    },
  },
  {
    name: 'an update replaces the data, to every backend at once',
    async run(lab) {
      const name = lab.name();
      const key = await lab.enter(lab.claim(name, { data: 'first' }));
      for (const [at, backend] of lab.backends.entries()) {
        assert.equal(await lab.update(key, `data ${at}`, backend), true);
        for (const other of lab.backends) assert.equal((await lab.list(name, other))[0]?.data, `data ${at}`);
      }
      for (const wrong of wrongKeys(lab, key)) assert.equal(await lab.update(wrong, 'wrong'), false);
      assert.equal((await lab.list(name))[0]?.data, 'data 2');
    },
  },
  {
    name: 'an update by one who waits does not make it hold (etcd #18163)',
    async run(lab) {
      const name = lab.name();
      const leader = await lab.enter(lab.claim(name, { data: 'leader' }));
      const candidate = await lab.enter(lab.claim(name, { data: 'candidate' }), lab.backends[1]);
      assert.equal(await lab.update(candidate, 'changed', lab.backends[1]), true);
      const line = await lab.list(name, lab.backends[2]);
      assert.deepEqual(
        line.map(({ ticket, data }) => [ticket, data]),
        [
          [leader.ticket, 'leader'],
          [candidate.ticket, 'changed'],
        ],
      );
      assert.deepEqual(
        holders(line).map(({ ticket }) => ticket),
        [leader.ticket],
      );
    },
  },
  {
    name: 'an update leaves its life as it is',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const sentMs = performance.now();
      const key = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      let updates = 0;
      await lab.until('it ends though its data changes all the time', async () => {
        const isThere = await lab.update(key, `update ${updates++}`, lab.backends[1]);
        if (performance.now() - sentMs < lab.shortTtlMs) assert.ok(isThere, 'an update ended it early');
        const line = isThere ? await lab.list(name) : [];
        await pause(lab.shortTtlMs / 10);
        return !contains(line, key);
      });
      assert.equal(await lab.renew(key, lab.longTtlMs), false);
    },
  },
  {
    name: 'a list shows all that was acknowledged before (ShedLock #3577, etcd #10811)',
    async run(lab) {
      const name = lab.name();
      for (let round = 0; round < lab.rounds(15); round++) {
        const [writer, reader] = [lab.backends[round % 3], lab.backends[(round + 1) % 3]];
        const key = await lab.enter(lab.claim(name), writer);
        assert.ok(contains(await lab.list(name, reader), key), 'entered and not shown');
        await lab.update(key, `round ${round}`, writer);
        assert.equal((await lab.list(name, reader))[0]?.data, `round ${round}`);
        await lab.leave(key, writer);
        assert.deepEqual(await lab.list(name, reader), [], 'left and still shown');
        const { entries } = await lab.enterWith(lab.claim(lab.name()), reader ?? lab.backends[0], true);
        assert.equal(entries.length, 1);
      }
    },
  },
];
