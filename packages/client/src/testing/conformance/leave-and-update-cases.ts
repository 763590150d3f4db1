import assert from 'node:assert/strict';
import { holders } from '../../backend/queue-position.ts';
import { contains, pause } from './conformance-fixture.ts';
import type { ConformanceCase } from './conformance-fixture.ts';
import { wrongKeys } from './lifetime-cases.ts';

/** Leaving and changing data: what they touch, and what all readers see of them at once. */
export const leaveAndUpdateCases: readonly ConformanceCase[] = [
  {
    name: 'leaving ends the entry, once, through any backend',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name));
      const behind = await fixture.enter(fixture.claim(name), fixture.backends[1]);
      assert.equal(await fixture.leave(key, fixture.backends[2]), true);
      for (const backend of fixture.backends) {
        assert.equal(await fixture.leave(key, backend), false);
        const queue = await fixture.list(name, backend);
        assert.ok(queue.length === 1 && contains(queue, behind));
      }
    },
  },
  {
    name: 'one that left is not renewed back to life (dynamodb-lock-client tristanls #1)',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name));
      await fixture.leave(key);
      for (const backend of fixture.backends) {
        assert.equal(await fixture.renew(key, fixture.longTtlMs, backend), false);
        assert.equal(await fixture.update(key, 'again', backend), false);
        assert.deepEqual(await fixture.list(name, backend), []);
      }
    },
  },
  {
    name: 'leaving needs the name, the id and the sequence number (ShedLock #2047)',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name, { holder: 'one of two' }));
      const other = await fixture.enter(fixture.claim(name, { holder: 'one of two' }));
      for (const wrong of wrongKeys(fixture, key)) assert.equal(await fixture.leave(wrong), false);
      assert.equal(await fixture.leave({ ...key, sequence: other.sequence }), false);
      const queue = await fixture.list(name);
      assert.ok(queue.length === 2 && contains(queue, key) && contains(queue, other));
    },
  },
  {
    name: "the late release of one that expired leaves the next holder alone (Misk's release ABA)",
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const expired = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      await fixture.untilGone(expired);
      const second = await fixture.enter(fixture.claim(name), fixture.backends[1]);
      assert.equal(await fixture.leave(second, fixture.backends[1]), true);
      const third = await fixture.enter(fixture.claim(name), fixture.backends[2]);
      assert.equal(await fixture.leave(expired), false);
      assert.ok(contains(await fixture.list(name), third));
    },
  },
  {
    name: 'a caller that does not know its sequence number leaves by its id and the sequence number 0',
    async run(fixture) {
      const name = fixture.name();
      const other = await fixture.enter(fixture.claim(name));
      const key = await fixture.enter(fixture.claim(name));
      assert.equal(await fixture.leave({ ...key, sequence: 0n, id: fixture.claim(name).id }), false);
      assert.equal(await fixture.leave({ ...key, sequence: 0n, name: fixture.name() }), false);
      assert.equal(await fixture.leave({ ...key, sequence: 0n }, fixture.backends[1]), true);
      assert.equal(await fixture.leave({ ...key, sequence: 0n }), false);
      const queue = await fixture.list(name);
      assert.ok(queue.length === 1 && contains(queue, other));
    },
  },
  {
    name: 'leaving while it is being renewed ends it, and has no effect on other entries (redis-semaphore #205, #206)',
    async run(fixture) {
      for (let round = 0; round < fixture.rounds(10); round++) {
        const name = fixture.name();
        const key = await fixture.enter(fixture.claim(name));
        const other = await fixture.enter(fixture.claim(name));
        const [left] = await Promise.all([
          fixture.leave(key, fixture.backends[0]),
          fixture.renew(key, fixture.longTtlMs, fixture.backends[1]),
          fixture.renew(key, fixture.longTtlMs, fixture.backends[2]),
        ]);
        assert.equal(left, true);
        const queue = await fixture.list(name, fixture.backends[round % 3]);
        assert.ok(queue.length === 1 && contains(queue, other));
        assert.equal(await fixture.renew(other, fixture.longTtlMs), true);
      }
    },
  },
  {
    name: 'an update replaces the data, to every backend at once',
    async run(fixture) {
      const name = fixture.name();
      const key = await fixture.enter(fixture.claim(name, { data: 'first' }));
      for (const [at, backend] of fixture.backends.entries()) {
        assert.equal(await fixture.update(key, `data ${at}`, backend), true);
        for (const other of fixture.backends) assert.equal((await fixture.list(name, other))[0]?.data, `data ${at}`);
      }
      for (const wrong of wrongKeys(fixture, key)) assert.equal(await fixture.update(wrong, 'wrong'), false);
      assert.equal((await fixture.list(name))[0]?.data, 'data 2');
    },
  },
  {
    name: 'an update of a waiting entry does not make it hold (etcd #18163)',
    async run(fixture) {
      const name = fixture.name();
      const leader = await fixture.enter(fixture.claim(name, { data: 'leader' }));
      const candidate = await fixture.enter(fixture.claim(name, { data: 'candidate' }), fixture.backends[1]);
      assert.equal(await fixture.update(candidate, 'changed', fixture.backends[1]), true);
      const queue = await fixture.list(name, fixture.backends[2]);
      assert.deepEqual(
        queue.map(({ sequence, data }) => [sequence, data]),
        [
          [leader.sequence, 'leader'],
          [candidate.sequence, 'changed'],
        ],
      );
      assert.deepEqual(
        holders(queue).map(({ sequence }) => sequence),
        [leader.sequence],
      );
    },
  },
  {
    name: 'an update leaves its life as it is',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const sentMs = performance.now();
      const key = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      let updates = 0;
      await fixture.until('it ends though its data changes all the time', async () => {
        const isThere = await fixture.update(key, `update ${updates++}`, fixture.backends[1]);
        if (performance.now() - sentMs < fixture.shortTtlMs) assert.ok(isThere, 'an update ended it early');
        const queue = isThere ? await fixture.list(name) : [];
        await pause(fixture.shortTtlMs / 10);
        return !contains(queue, key);
      });
      assert.equal(await fixture.renew(key, fixture.longTtlMs), false);
    },
  },
  {
    name: 'a list shows all that was acknowledged before (ShedLock #3577, etcd #10811)',
    async run(fixture) {
      const name = fixture.name();
      for (let round = 0; round < fixture.rounds(15); round++) {
        const [writer, reader] = [fixture.backends[round % 3], fixture.backends[(round + 1) % 3]];
        const key = await fixture.enter(fixture.claim(name), writer);
        assert.ok(contains(await fixture.list(name, reader), key), 'entered and not shown');
        await fixture.update(key, `round ${round}`, writer);
        assert.equal((await fixture.list(name, reader))[0]?.data, `round ${round}`);
        await fixture.leave(key, writer);
        assert.deepEqual(await fixture.list(name, reader), [], 'left and still shown');
        const { entries } = await fixture.enterWith(fixture.claim(fixture.name()), reader ?? fixture.backends[0], true);
        assert.equal(entries.length, 1);
      }
    },
  },
];
