import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entry, readBehind, texts } from '../testing/engine-case.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

describe.skipIf(!hasEtcd())('opening a log in etcd', () => {
  let etcd: EtcdProcess;
  const logs = new EtcdLogs();

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
  });

  afterEach(() => logs.closeAll());
  afterAll(() => etcd.dispose());

  function refused(prefix: string, message: RegExp): Promise<void> {
    return expect(logs.open(etcd.endpoint, prefix)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'unusable',
      message: expect.stringMatching(message),
    });
  }

  test('two logs in one etcd do not see each other', async () => {
    // One prefix is the beginning of the other, as file names can be.
    const [a, b] = [await logs.open(etcd.endpoint, '/team/a'), await logs.open(etcd.endpoint, '/team/a2')];
    const one = await a.append([entry('of a')], logStart);
    await b.append([entry('of b')], logStart);
    await b.append([], await b.tail());
    expect(texts(await readBehind(a, logStart, 1))).toEqual(['of a']);
    expect(texts(await readBehind(b, logStart, 1))).toEqual(['of b']);
    expect(await a.tail()).toEqual(one);
  });

  test('servers that create the same log at once share one log', async () => {
    const opened = await Promise.all([1, 2, 3, 4].map(() => logs.open(etcd.endpoint, '/made/at/once/')));
    const one = await opened[0]!.append([entry('one')], logStart);
    for (const log of opened) expect(await log.tail()).toEqual(one);
  });

  test('a prefix that holds other keys is refused, and they stay', async () => {
    etcd.control('put', '/registry/pods/one', 'theirs');
    await refused('/registry', /holds keys that are not of a Tenure log.*etcdctl del --prefix \/registry\//);
    expect(etcd.control('get', '--prefix', '/registry/', '--print-value-only').trim()).toBe('theirs');
  });

  test('a head that Tenure did not write is refused', async () => {
    etcd.control('put', '/git/head', 'ref: refs/heads/main');
    await refused('/git', /\/git\/head holds something that is not Tenure's/);
  });

  test('a newer format is refused', async () => {
    etcd.control('put', '/newer/head', `tenure-head 2 ${'a'.repeat(32)} 1 further words`);
    await refused('/newer', /has format 2, this program reads 1: run the newer Tenure/);
  });

  test('an inconsistent head is refused', async () => {
    etcd.control('put', '/broken/head', `tenure-head 1 ${'a'.repeat(32)} 1 abc 5`);
    const opening = logs.open(etcd.endpoint, '/broken');
    await expect(opening).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/restore etcd from a backup/),
    });
  });

  test('a prefix inside another log is refused, and so is an empty prefix', async () => {
    await logs.open(etcd.endpoint, '/outer');
    await refused('/outer/inner/log', /lies inside the log whose head is \/outer\/head/);
    await refused('/', /give the log a name of its own/);
  });

  test('an etcd that cannot be reached is named, with the reason, after a bounded time', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const opening = logs.open(`127.0.0.1:${port}`, '/x', { openTimeoutMs: 500 });
    await expect(opening).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(new RegExp(`127.0.0.1:${port}: connect ECONNREFUSED`)),
    });
  });

  test('a server that is not etcd is refused after a bounded time', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n').on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const opening = logs.open(`127.0.0.1:${port}`, '/x', { openTimeoutMs: 500 });
    await expect(opening).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(new RegExp(`127.0.0.1:${port}: `)),
    });
    server.close();
  });

  test('an endpoint that is down is skipped', async () => {
    const log = await logs.open(etcd.endpoint, '/passed-over', { endpoints: ['127.0.0.1:1', etcd.endpoint] });
    expect((await log.append([entry('one')], logStart)).index).toBe(1);
  });

  test('an etcd that was never compacted causes a notice, unless etcd is dedicated', async () => {
    const notices: string[] = [];
    const onNotice = (notice: string): void => void notices.push(notice);
    await logs.open(etcd.endpoint, '/noticed', { onNotice, dedicated: true });
    expect(notices).toEqual([]);
    await logs.open(etcd.endpoint, '/noticed', { onNotice });
    expect(notices.length).toBe(1);
    expect(notices[0]!).toMatch(/--auto-compaction-retention.*--engine-dedicated/);
    etcd.control('compact', '3');
    await logs.open(etcd.endpoint, '/noticed', { onNotice });
    expect(notices.length).toBe(1);
  });
});
