import { expect } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import { entries, entry, readBehind, texts } from './engine-case.ts';
import type { EngineCase } from './engine-case.ts';

/** The contract of `append` and `tail`. */
export const appendCases: readonly EngineCase[] = [
  {
    name: 'an empty log ends at its start',
    async run(log) {
      const engine = await log.open();
      expect(await engine.tail()).toEqual(logStart);
    },
  },
  {
    name: 'an append answers with the position that the running hash gives',
    async run(log) {
      const engine = await log.open();
      const batch = [entry('a'), entry(''), entry('c')];
      const expected = batch.reduce(nextPosition, logStart);
      expect(await engine.append(batch, logStart)).toEqual(expected);
      expect(await engine.tail()).toEqual(expected);
      const more = await engine.append([entry('d')], expected);
      expect(more).toEqual(nextPosition(expected, entry('d')));
    },
  },
  {
    name: 'an append at another position than the end is a conflict that names the end and writes nothing',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      const two = await engine.append([entry('two')], one);
      const ahead = nextPosition(two, entry('three'));
      const otherHash = { index: two.index, hash: one.hash };
      for (const after of [logStart, one, ahead, otherHash]) {
        await expect(engine.append([entry('wrong')], after)).rejects.toMatchObject({
          name: 'EngineError',
          code: 'conflict',
          tail: two,
        });
      }
      expect(await engine.tail()).toEqual(two);
      await engine.append([entry('three')], two);
      expect(texts(await readBehind(engine, logStart, 3))).toEqual(['one', 'two', 'three']);
    },
  },
  {
    name: 'an empty batch writes nothing and checks its condition',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      expect(await engine.append([], one)).toEqual(one);
      await expect(engine.append([], logStart)).rejects.toMatchObject({ code: 'conflict', tail: one });
      expect(await engine.tail()).toEqual(one);
    },
  },
  {
    name: 'a second concurrent append is refused without an effect',
    async run(log) {
      const engine = await log.open();
      const first = engine.append([entry('one')], logStart);
      const second = engine.append([entry('two')], logStart);
      await expect(second).rejects.toBeInstanceOf(Error);
      const one = await first;
      expect(await engine.tail()).toEqual(one);
      expect(texts(await readBehind(engine, logStart, 1))).toEqual(['one']);
    },
  },
  {
    name: 'bytes are read as written: each byte value, an empty entry and a long one',
    async run(log) {
      const engine = await log.open();
      const everyByte = Uint8Array.from({ length: 256 }, (_, at) => at);
      const batch = [everyByte, new Uint8Array(0), new Uint8Array(5000), everyByte.toReversed(), new Uint8Array(1)];
      const kept = batch.map((bytes) => Buffer.from(bytes));
      await engine.append(batch, logStart);
      // The caller may reuse the batch once the append has settled.
      for (const bytes of batch) bytes.fill(0xee);
      const read = await readBehind(engine, logStart, batch.length);
      expect(read.map(({ bytes }) => Buffer.from(bytes).toString('hex'))).toEqual(
        kept.map((bytes) => bytes.toString('hex')),
      );
    },
  },
  {
    name: 'entries of 2 MiB and batches of thousands are accepted',
    async run(log) {
      const engine = await log.open();
      const large = entries(3, 2 * 1024 * 1024);
      const many = entries(5000, 100);
      const behindLarge = await engine.append(large, logStart);
      const end = await engine.append(many, behindLarge);
      expect(end.index).toBe(5003);
      const read = await readBehind(engine, logStart, 5003);
      expect(read.length).toBe(5003);
      for (const [at, bytes] of [...large, ...many].entries()) {
        expect(Buffer.compare(read[at]!.bytes, bytes), `entry ${at + 1}`).toBe(0);
      }
      expect(read.at(-1)!.position).toEqual(end);
    },
  },
  {
    name: 'after close every call is refused except close',
    async run(log) {
      const engine = await log.open();
      await engine.append([entry('one')], logStart);
      await engine.close();
      await engine.close();
      await expect(engine.append([], logStart)).rejects.toMatchObject({ code: 'closed' });
      await expect(engine.tail()).rejects.toMatchObject({ code: 'closed' });
      await expect(engine.loadSnapshot()).rejects.toMatchObject({ code: 'closed' });
      await expect(engine.trim(1)).rejects.toMatchObject({ code: 'closed' });
      await expect(readBehind(engine, logStart, 1)).rejects.toMatchObject({ code: 'closed' });
    },
  },
  {
    name: 'the size grows with the log',
    async run(log) {
      const engine = await log.open();
      const empty = engine.sizeBytes();
      await engine.append(entries(40, 100_000), logStart);
      expect(engine.sizeBytes() - empty, `${empty}, then ${engine.sizeBytes()}`).toBeGreaterThanOrEqual(3_000_000);
    },
  },
  {
    name: 'a reopened log holds its entries, and accepts appends',
    needsDurability: true,
    async run(log) {
      const first = await log.open();
      const one = await first.append([entry('one'), entry('')], logStart);
      await first.close();
      const second = await log.open();
      expect(await second.tail()).toEqual(one);
      const two = await second.append([entry('three')], one);
      await second.close();
      const third = await log.open();
      expect(await third.tail()).toEqual(two);
      expect(texts(await readBehind(third, logStart, 3))).toEqual(['one', '', 'three']);
    },
  },
];
