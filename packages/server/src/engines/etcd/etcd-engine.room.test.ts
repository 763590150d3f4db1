import assert from 'node:assert/strict';
import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, inject, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, readBehind, readSnapshot, texts } from '../testing/engine-case.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

const mib = 1024 * 1024;
/** A slice of a trim removes 500 of them. */
const trimmedRecords = { commit: 600, ci: 1_100, soak: 5_100 }[inject('effort')];

describe.skipIf(!hasEtcd())('the room that a log takes in etcd', () => {
  let etcd: EtcdProcess;
  const logs = new EtcdLogs();

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
  });

  afterEach(() => logs.closeAll());
  afterAll(() => etcd.dispose());

  const keysUnder = (prefix: string): string[] =>
    etcd.control('get', '--prefix', '--keys-only', prefix).split('\n').filter(Boolean);

  test('a trim leaves no record and no part behind, in slices', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    let at = await log.append(entries(1, 3 * mib), logStart);
    for (let number = 0; number < trimmedRecords; number++) at = await log.append([entry(`${number}`)], at);
    at = await log.append(entries(1, 200_000), at);
    await log.saveSnapshot(at, chunksOf('state'));
    const before = log.sizeBytes();
    await log.trim(at.index);
    assert.deepEqual(keysUnder(`${prefix}/log/`), []);
    assert.deepEqual(keysUnder(`${prefix}/part/`), []);
    assert.ok(before > 3 * mib && log.sizeBytes() < 1000, `${before}, then ${log.sizeBytes()}`);
    await log.append([entry('more')], at);
    assert.deepEqual(texts(await readBehind(log, at, 1)), ['more']);
    await assert.rejects(readBehind(log, logStart, 1), { code: 'trimmed' });
  });

  test('every server knows the size, whoever wrote and trimmed', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const one = await writer.append(entries(10, 10_000), logStart);
    const late = await logs.open(etcd.endpoint, prefix);
    assert.equal(late.sizeBytes(), writer.sizeBytes());
    await writer.saveSnapshot(one, chunksOf(Buffer.alloc(50_000)));
    await writer.trim(one.index);
    await late.tail();
    assert.equal(late.sizeBytes(), writer.sizeBytes());
    assert.ok(late.sizeBytes() < 60_000);
  });

  test('a snapshot in many parts replaces the old one and what an interrupted one has left', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    const one = await log.append([entry('one')], logStart);
    await log.saveSnapshot(logStart, chunksOf(Buffer.alloc(5 * mib, 'old')));
    const orphan = `${prefix}/snap/0000000000000001-${'a'.repeat(32)}/00000000`;
    etcd.control('put', orphan, 'of a server that was killed');
    const stateful = Array.from({ length: 40 }, (_, at) => Buffer.alloc(100_000, `${at}`));
    await log.saveSnapshot(one, chunksOf(...stateful));
    assert.equal((await readSnapshot(log))?.chunks.length, 40);
    const left = keysUnder(`${prefix}/snap/`);
    assert.equal(left.length, 4, left.join('\n'));
    assert.ok(!left.includes(orphan));
  });

  test('a snapshot that is replaced while it is read is read to its end, until etcd is compacted', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    await log.saveSnapshot(logStart, chunksOf(...entries(6, mib)));
    const readers = [await log.loadSnapshot(), await log.loadSnapshot()].map((snapshot) =>
      snapshot!.chunks[Symbol.asyncIterator](),
    );
    for (const reader of readers) assert.equal((await reader.next()).done, false);
    await log.saveSnapshot(logStart, chunksOf('new'));
    for (let read = 1; read < 6; read++) assert.equal((await readers[0]!.next()).done, false);
    assert.equal((await readers[0]!.next()).done, true);
    const status = JSON.parse(etcd.control('endpoint', 'status', '--write-out=json')) as {
      Status: { header: { revision: number } };
    }[];
    etcd.control('compact', `${status[0]!.Status.header.revision}`);
    await assert.rejects(
      async () => {
        for (let read = 1; read < 7; read++) await readers[1]!.next();
      },
      { code: 'trimmed' },
    );
  });

  test('a part that is changed or missing is damage, never skipped', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    const one = await log.append(entries(1, 100_000), logStart);
    const two = await log.append([entry('two')], one);
    await log.append([entry('three')], two);
    await log.saveSnapshot(one, chunksOf('state'));
    const [part] = keysUnder(`${prefix}/snap/`);
    // As many bytes as one frame with 'state' has.
    etcd.control('put', part!, 'corrupted');
    await assert.rejects(readSnapshot(log), { name: 'EngineError', code: 'damaged' });
    etcd.control('del', `${prefix}/log/0000000000000002`);
    await assert.rejects(readBehind(log, one, 1), { code: 'damaged', message: /entry 2, which is missing/ });
    etcd.control('del', '--prefix', `${prefix}/part/`);
    await assert.rejects(readBehind(log, logStart, 1), { code: 'damaged' });
  });

  test('only with a dedicated etcd are its old revisions compacted', async () => {
    const [shared, own] = [logs.newPrefix(), logs.newPrefix()];
    for (const [prefix, dedicated] of [
      [shared, false],
      [own, true],
    ] as const) {
      const fresh = await EtcdProcess.start();
      try {
        const log = await logs.open(fresh.endpoint, prefix, { dedicated });
        const one = await log.append([entry('one')], logStart);
        await log.saveSnapshot(one, chunksOf('state'));
        await log.trim(1);
        const read = (): string => fresh.control('get', '--rev=2', `${prefix}/head`);
        if (dedicated) assert.throws(read, /compacted/);
        else assert.match(read(), /tenure-head/);
        await log.append([entry('two')], one);
      } finally {
        await logs.closeAll();
        await fresh.dispose();
      }
    }
  });

  describe('with a small quota', () => {
    const quotaBytes = 48 * mib;
    let small: EtcdProcess;

    async function startSmall(bytes: number, ...flags: string[]): Promise<void> {
      small = await EtcdProcess.start(`--quota-backend-bytes=${bytes}`, ...flags);
    }

    afterEach(async () => {
      await logs.closeAll();
      await small.dispose();
    });

    async function appendsGoOn(log: LogEngine): Promise<Position> {
      const tail = await log.tail();
      return log.append([entry('goes on')], tail);
    }

    // With a long interval etcd tells sizes that are old, as it does with a short one on a fast disk.
    test.each(['100ms', '1m'])('a snapshot that does not fit stops no writes, commits every %s', async (interval) => {
      await startSmall(quotaBytes, `--backend-batch-interval=${interval}`);
      const log = await logs.open(small.endpoint, '/fits', { quotaBytes });
      await log.saveSnapshot(logStart, chunksOf('small'));
      const one = await appendsGoOn(log);
      const refused = log.saveSnapshot(one, chunksOf(...entries(60, mib)));
      await assert.rejects(refused, { name: 'EngineError', code: 'unavailable', message: /quota is 48 MiB/ });
      assert.deepEqual(await readSnapshot(log), { index: 0, chunks: ['small'] });
      await appendsGoOn(log);
      assert.equal(
        small.control('get', '--prefix', '--keys-only', '/fits/snap/').split('\n').filter(Boolean).length,
        1,
      );
    });

    test('at the quota nothing is written, with a message that says what to do, and reading goes on', async () => {
      const soonFullBytes = 16 * mib;
      await startSmall(soonFullBytes);
      // Each write at the quota is tried until its time is up.
      const log = await logs.open(small.endpoint, '/full', { quotaBytes: soonFullBytes, requestTimeoutMs: 800 });
      let at = logStart;
      // On a busy machine an append may run out of time long before: the next one begins where the log then ends.
      const isLate = (error: unknown): boolean =>
        error instanceof EngineError && /Deadline exceeded/.test(error.message);
      const filling = async (): Promise<void> => {
        for (let number = 0, late = 0; number < 600; number++) {
          try {
            at = await log.append(entries(1, mib), at);
          } catch (error) {
            if (!isLate(error) || (late += 1) > 10) throw error;
            at = await log.tail();
          }
        }
      };
      await assert.rejects(filling(), {
        name: 'EngineError',
        // Which of its two requests meets the quota is chance; the one that commits may be applied all the same.
        code: /^(unavailable|unknown)$/,
        message: /database space exceeded.*etcdctl defrag.*alarm disarm/,
      });
      const tail = await log.tail();
      assert.ok(tail.index - at.index <= 1);
      assert.equal((await readBehind(log, logStart, tail.index)).length, tail.index);
    });
  });
});
