import assert from 'node:assert/strict';
import { logStart, nextPosition } from '../chain-hash.ts';
import { entries, entry, readBehind, texts } from './engine-case.ts';
import type { EngineCase } from './engine-case.ts';

/** What the contract says about `append` and `tail`. */
export const appendCases: readonly EngineCase[] = [
  {
    name: 'an empty log ends at its start',
    async run(log) {
      const engine = await log.open();
      assert.deepEqual(await engine.tail(), logStart);
    },
  },
  {
    name: 'an append answers with the position that the running hash gives',
    async run(log) {
      const engine = await log.open();
      const batch = [entry('a'), entry(''), entry('c')];
      const expected = batch.reduce(nextPosition, logStart);
      assert.deepEqual(await engine.append(batch, logStart), expected);
      assert.deepEqual(await engine.tail(), expected);
      const more = await engine.append([entry('d')], expected);
      assert.deepEqual(more, nextPosition(expected, entry('d')));
    },
  },
  {
    name: 'an append elsewhere than at the end is a conflict that names the end and writes nothing',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      const two = await engine.append([entry('two')], one);
      const ahead = nextPosition(two, entry('three'));
      const otherHash = { index: two.index, hash: one.hash };
      for (const after of [logStart, one, ahead, otherHash]) {
        await assert.rejects(engine.append([entry('wrong')], after), {
          name: 'EngineError',
          code: 'conflict',
          tail: two,
        });
      }
      assert.deepEqual(await engine.tail(), two);
      await engine.append([entry('three')], two);
      assert.deepEqual(texts(await readBehind(engine, logStart, 3)), ['one', 'two', 'three']);
    },
  },
  {
    name: 'an empty batch writes nothing and checks its condition',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      assert.deepEqual(await engine.append([], one), one);
      await assert.rejects(engine.append([], logStart), { code: 'conflict', tail: one });
      assert.deepEqual(await engine.tail(), one);
    },
  },
  {
    name: 'a second append while one is out is refused and does no harm',
    async run(log) {
      const engine = await log.open();
      const first = engine.append([entry('one')], logStart);
      const second = engine.append([entry('two')], logStart);
      await assert.rejects(second);
      const one = await first;
      assert.deepEqual(await engine.tail(), one);
      assert.deepEqual(texts(await readBehind(engine, logStart, 1)), ['one']);
    },
  },
  {
    name: 'the bytes come back as they were, each value of a byte, none and many',
    async run(log) {
      const engine = await log.open();
      const everyByte = Uint8Array.from({ length: 256 }, (_, at) => at);
      const batch = [everyByte, new Uint8Array(0), new Uint8Array(5000), everyByte.toReversed(), new Uint8Array(1)];
      const kept = batch.map((bytes) => Buffer.from(bytes));
      await engine.append(batch, logStart);
      // The batch is the caller's again once the append has answered.
      for (const bytes of batch) bytes.fill(0xee);
      const read = await readBehind(engine, logStart, batch.length);
      assert.deepEqual(
        read.map(({ bytes }) => Buffer.from(bytes).toString('hex')),
        kept.map((bytes) => bytes.toString('hex')),
      );
    },
  },
  {
    name: 'entries of 2 MiB and batches of thousands are taken whole',
    async run(log) {
      const engine = await log.open();
      const large = entries(3, 2 * 1024 * 1024);
      const many = entries(5000, 100);
      const behindLarge = await engine.append(large, logStart);
      const end = await engine.append(many, behindLarge);
      assert.equal(end.index, 5003);
      const read = await readBehind(engine, logStart, 5003);
      assert.equal(read.length, 5003);
      for (const [at, bytes] of [...large, ...many].entries()) {
        assert.equal(Buffer.compare(read[at]!.bytes, bytes), 0, `entry ${at + 1}`);
      }
      assert.deepEqual(read.at(-1)!.position, end);
    },
  },
  {
    name: 'after close every call is refused, and closing again is not',
    async run(log) {
      const engine = await log.open();
      await engine.append([entry('one')], logStart);
      await engine.close();
      await engine.close();
      await assert.rejects(engine.append([], logStart), { code: 'closed' });
      await assert.rejects(engine.tail(), { code: 'closed' });
      await assert.rejects(engine.loadSnapshot(), { code: 'closed' });
      await assert.rejects(engine.trim(1), { code: 'closed' });
      await assert.rejects(readBehind(engine, logStart, 1), { code: 'closed' });
    },
  },
  {
    name: 'the size grows with the log',
    async run(log) {
      const engine = await log.open();
      const empty = engine.sizeBytes();
      await engine.append(entries(40, 100_000), logStart);
      assert.ok(engine.sizeBytes() - empty >= 3_000_000, `${empty}, then ${engine.sizeBytes()}`);
    },
  },
  {
    name: 'a log that was closed and opened holds what it held, and goes on',
    needsDurability: true,
    async run(log) {
      const first = await log.open();
      const one = await first.append([entry('one'), entry('')], logStart);
      await first.close();
      const second = await log.open();
      assert.deepEqual(await second.tail(), one);
      const two = await second.append([entry('three')], one);
      await second.close();
      const third = await log.open();
      assert.deepEqual(await third.tail(), two);
      assert.deepEqual(texts(await readBehind(third, logStart, 3)), ['one', '', 'three']);
    },
  },
];
