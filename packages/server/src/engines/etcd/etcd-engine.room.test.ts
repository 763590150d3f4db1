import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, readBehind, readSnapshot, texts } from '../testing/engine-case.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

const mib = 1024 * 1024;
/** A slice of a trim removes 500 of them. */
const trimmedRecords = { commit: 600, ci: 1_100, soak: 5_100 }[inject('effort')];

describe.skipIf(!hasEtcd())('the size of a log in etcd', () => {
  let etcd: EtcdProcess;
  const logs = new EtcdLogs();

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
  });

  afterEach(() => logs.closeAll());
  afterAll(() => etcd.dispose());

  const keysUnder = (prefix: string): string[] =>
    etcd.control('get', '--prefix', '--keys-only', prefix).split('\n').filter(Boolean);

  test('a trim removes every record and part, in slices', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    let at = await log.append(entries(1, 3 * mib), logStart);
    for (let number = 0; number < trimmedRecords; number++) at = await log.append([entry(`${number}`)], at);
    at = await log.append(entries(1, 200_000), at);
    await log.saveSnapshot(at, chunksOf('state'));
    const before = log.sizeBytes();
    await log.trim(at.index);
    expect(keysUnder(`${prefix}/log/`)).toEqual([]);
    expect(keysUnder(`${prefix}/part/`)).toEqual([]);
    expect(before, `${before}, then ${log.sizeBytes()}`).toBeGreaterThan(3 * mib);
    expect(log.sizeBytes(), `${before}, then ${log.sizeBytes()}`).toBeLessThan(1000);
    await log.append([entry('more')], at);
    expect(texts(await readBehind(log, at, 1))).toEqual(['more']);
    await expect(readBehind(log, logStart, 1)).rejects.toMatchObject({ code: 'trimmed' });
  });

  test('every server knows the size, also after appends and trims by other servers', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const one = await writer.append(entries(10, 10_000), logStart);
    const late = await logs.open(etcd.endpoint, prefix);
    expect(late.sizeBytes()).toBe(writer.sizeBytes());
    await writer.saveSnapshot(one, chunksOf(Buffer.alloc(50_000)));
    await writer.trim(one.index);
    await late.tail();
    expect(late.sizeBytes()).toBe(writer.sizeBytes());
    expect(late.sizeBytes()).toBeLessThan(60_000);
  });

  test('a snapshot in many parts replaces the old one and the remains of an interrupted one', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    const one = await log.append([entry('one')], logStart);
    await log.saveSnapshot(logStart, chunksOf(Buffer.alloc(5 * mib, 'old')));
    const orphan = `${prefix}/snap/0000000000000001-${'a'.repeat(32)}/00000000`;
    etcd.control('put', orphan, 'of a server that was killed');
    const stateful = Array.from({ length: 40 }, (_, at) => Buffer.alloc(100_000, `${at}`));
    await log.saveSnapshot(one, chunksOf(...stateful));
    expect((await readSnapshot(log))?.chunks.length).toBe(40);
    const left = keysUnder(`${prefix}/snap/`);
    expect(left.length, left.join('\n')).toBe(4);
    expect(left).not.toContain(orphan);
  });

  test('a snapshot that is replaced while it is read is read to its end, until etcd is compacted', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    await log.saveSnapshot(logStart, chunksOf(...entries(6, mib)));
    const readers = [await log.loadSnapshot(), await log.loadSnapshot()].map((snapshot) =>
      snapshot!.chunks[Symbol.asyncIterator](),
    );
    for (const reader of readers) expect((await reader.next()).done).toBe(false);
    await log.saveSnapshot(logStart, chunksOf('new'));
    for (let read = 1; read < 6; read++) expect((await readers[0]!.next()).done).toBe(false);
    expect((await readers[0]!.next()).done).toBe(true);
    const status = JSON.parse(etcd.control('endpoint', 'status', '--write-out=json')) as {
      Status: { header: { revision: number } };
    }[];
    etcd.control('compact', `${status[0]!.Status.header.revision}`);
    await expect(async () => {
      for (let read = 1; read < 7; read++) await readers[1]!.next();
    }).rejects.toMatchObject({ code: 'trimmed' });
  });

  test('a changed or missing part is reported as damage, never skipped', async () => {
    const prefix = logs.newPrefix();
    const log = await logs.open(etcd.endpoint, prefix);
    const one = await log.append(entries(1, 100_000), logStart);
    const two = await log.append([entry('two')], one);
    await log.append([entry('three')], two);
    await log.saveSnapshot(one, chunksOf('state'));
    const [part] = keysUnder(`${prefix}/snap/`);
    // The same size as one frame with 'state'.
    etcd.control('put', part!, 'corrupted');
    await expect(readSnapshot(log)).rejects.toMatchObject({ name: 'EngineError', code: 'damaged' });
    etcd.control('del', `${prefix}/log/0000000000000002`);
    await expect(readBehind(log, one, 1)).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/entry 2, which is missing/),
    });
    etcd.control('del', '--prefix', `${prefix}/part/`);
    await expect(readBehind(log, logStart, 1)).rejects.toMatchObject({ code: 'damaged' });
  });

  test('old revisions are compacted only in a dedicated etcd', async () => {
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
        if (dedicated) expect(read).toThrow(/compacted/);
        else expect(read()).toMatch(/tenure-head/);
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

    // With a long commit interval etcd reports outdated sizes, as it does with a short one on a fast disk.
    test.each(['100ms', '1m'])('a snapshot that does not fit stops no writes, commits every %s', async (interval) => {
      await startSmall(quotaBytes, `--backend-batch-interval=${interval}`);
      const log = await logs.open(small.endpoint, '/fits', { quotaBytes });
      await log.saveSnapshot(logStart, chunksOf('small'));
      const one = await appendsGoOn(log);
      const refused = log.saveSnapshot(one, chunksOf(...entries(60, mib)));
      await expect(refused).rejects.toMatchObject({
        name: 'EngineError',
        code: 'unavailable',
        message: expect.stringMatching(/quota is 48 MiB/),
      });
      expect(await readSnapshot(log)).toEqual({ index: 0, chunks: ['small'] });
      await appendsGoOn(log);
      expect(small.control('get', '--prefix', '--keys-only', '/fits/snap/').split('\n').filter(Boolean).length).toBe(1);
    });

    test('at the quota nothing is written, the message names the remedy, and reads continue', async () => {
      const soonFullBytes = 16 * mib;
      await startSmall(soonFullBytes);
      // Each write at the quota is retried until its timeout.
      const log = await logs.open(small.endpoint, '/full', { quotaBytes: soonFullBytes, requestTimeoutMs: 800 });
      let at = logStart;
      // On a busy machine an append may time out long before: the next one begins at the actual end of the log.
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
      await expect(filling()).rejects.toMatchObject({
        name: 'EngineError',
        // Which of its two requests meets the quota is chance; the one that commits may be applied all the same.
        code: expect.stringMatching(/^(unavailable|unknown)$/),
        message: expect.stringMatching(/database space exceeded.*etcdctl defrag.*alarm disarm/),
      });
      const tail = await log.tail();
      expect(tail.index - at.index).toBeLessThanOrEqual(1);
      expect((await readBehind(log, logStart, tail.index)).length).toBe(tail.index);
    });
  });
});
