import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
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
    return assert.rejects(logs.open(etcd.endpoint, prefix), { name: 'EngineError', code: 'unusable', message });
  }

  test('two logs in one etcd do not see each other', async () => {
    // As names in a file system would, one is the beginning of the other.
    const [a, b] = [await logs.open(etcd.endpoint, '/team/a'), await logs.open(etcd.endpoint, '/team/a2')];
    const one = await a.append([entry('of a')], logStart);
    await b.append([entry('of b')], logStart);
    await b.append([], await b.tail());
    assert.deepEqual(texts(await readBehind(a, logStart, 1)), ['of a']);
    assert.deepEqual(texts(await readBehind(b, logStart, 1)), ['of b']);
    assert.deepEqual(await a.tail(), one);
  });

  test('servers that make the same log at once have one log', async () => {
    const opened = await Promise.all([1, 2, 3, 4].map(() => logs.open(etcd.endpoint, '/made/at/once/')));
    const one = await opened[0]!.append([entry('one')], logStart);
    for (const log of opened) assert.deepEqual(await log.tail(), one);
  });

  test('a prefix that holds other keys is refused, and they stay', async () => {
    etcd.control('put', '/registry/pods/one', 'theirs');
    await refused('/registry', /holds keys that are not of a Tenure log.*etcdctl del --prefix \/registry\//);
    assert.equal(etcd.control('get', '--prefix', '/registry/', '--print-value-only').trim(), 'theirs');
  });

  test('a head that is not of Tenure is refused', async () => {
    etcd.control('put', '/git/head', 'ref: refs/heads/main');
    await refused('/git', /\/git\/head holds something that is not Tenure's/);
  });

  test('a newer format is refused', async () => {
    etcd.control('put', '/newer/head', `tenure-head 2 ${'a'.repeat(32)} 1 whatever comes`);
    await refused('/newer', /has format 2, this program reads 1: run the newer Tenure/);
  });

  test('a head that contradicts itself is refused', async () => {
    etcd.control('put', '/broken/head', `tenure-head 1 ${'a'.repeat(32)} 1 abc 5`);
    const opening = logs.open(etcd.endpoint, '/broken');
    await assert.rejects(opening, { code: 'damaged', message: /restore etcd from a backup/ });
  });

  test('a prefix inside another log is refused, and no prefix at all', async () => {
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
    await assert.rejects(opening, {
      code: 'unavailable',
      message: new RegExp(`127.0.0.1:${port}: connect ECONNREFUSED`),
    });
  });

  test('what listens there and is no etcd is refused after a bounded time', async () => {
    const server = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n').on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const opening = logs.open(`127.0.0.1:${port}`, '/x', { openTimeoutMs: 500 });
    await assert.rejects(opening, { code: 'unavailable', message: new RegExp(`127.0.0.1:${port}: `) });
    server.close();
  });

  test('an endpoint that is down is passed over', async () => {
    const log = await logs.open(etcd.endpoint, '/passed-over', { endpoints: ['127.0.0.1:1', etcd.endpoint] });
    assert.equal((await log.append([entry('one')], logStart)).index, 1);
  });

  test('who compacts is asked: a notice while nobody ever has, none with a dedicated etcd', async () => {
    const notices: string[] = [];
    const onNotice = (notice: string): void => void notices.push(notice);
    await logs.open(etcd.endpoint, '/noticed', { onNotice, dedicated: true });
    assert.deepEqual(notices, []);
    await logs.open(etcd.endpoint, '/noticed', { onNotice });
    assert.equal(notices.length, 1);
    assert.match(notices[0]!, /--auto-compaction-retention.*--engine-dedicated/);
    etcd.control('compact', '3');
    await logs.open(etcd.endpoint, '/noticed', { onNotice });
    assert.equal(notices.length, 1);
  });
});
