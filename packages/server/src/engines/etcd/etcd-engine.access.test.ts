import { join } from 'node:path';
import { EtcdProcess, hasEtcd, makeCertificates, withTemporaryFolder } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entry, readBehind, texts } from '../testing/engine-case.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

const ada = { user: 'ada', password: 'engine' };
const bob = { user: 'bob', password: 'reader' };

describe.skipIf(!hasEtcd())('a log in an etcd with authentication', () => {
  let etcd: EtcdProcess;
  const logs = new EtcdLogs();

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
    for (const [user, password] of [['root', 'root'], ...[ada, bob].map((one) => [one.user, one.password])]) {
      etcd.control('user', 'add', `${user}:${password}`);
    }
    etcd.control('user', 'grant-role', 'root', 'root');
    for (const [name, right] of [
      ['ada', 'readwrite'],
      ['bob', 'read'],
    ]) {
      etcd.control('role', 'add', name!);
      etcd.control('role', 'grant-permission', name!, right!, '--prefix=true', '/guarded/');
      etcd.control('user', 'grant-role', name!, name!);
    }
    etcd.control('auth', 'enable');
  });

  afterEach(() => logs.closeAll());
  afterAll(() => etcd.dispose());

  test('a user with the rights to the prefix, and to nothing else, can keep a log', async () => {
    const log = await logs.open(etcd.endpoint, '/guarded', { credentials: ada });
    const one = await log.append([entry('one')], await log.tail());
    await log.saveSnapshot(one, (async function* () {})());
    await log.trim(one.index);
    await log.append([entry('two')], one);
    expect(texts(await readBehind(log, one, 1))).toEqual(['two']);
  });

  test('without a user, with a wrong password or with too few rights it is refused with a remedy', async () => {
    const refused = (prefix: string, credentials: typeof ada | undefined, message: RegExp): Promise<void> =>
      expect(logs.open(etcd.endpoint, prefix, credentials && { credentials })).rejects.toMatchObject({
        name: 'EngineError',
        code: 'unusable',
        message: expect.stringMatching(message),
      });
    await refused('/guarded', undefined, /give --engine-user/);
    await refused('/guarded', { ...ada, password: 'wrong' }, /give the right user and password/);
    await refused('/other', ada, /role grant-permission ROLE readwrite \/other\/ --prefix=true/);
    await refused('/guarded', bob, /role grant-permission ROLE readwrite \/guarded\/ --prefix=true/);
  });

  test('an expired token is requested again, also for the watch', async () => {
    const log = await logs.open(etcd.endpoint, '/guarded', { credentials: ada });
    let at = await log.append([entry('before')], await log.tail());
    const reading = readBehind(log, at, 2);
    await etcd.kill();
    await etcd.start();
    for (;;) {
      // The first request after the restart may use a connection from before it.
      const tail = await log.tail().catch(() => undefined);
      if (tail !== undefined) break;
    }
    at = await log.append([entry('after')], at);
    await log.append([entry('later')], at);
    expect(texts(await reading)).toEqual(['after', 'later']);
  });
});

describe.skipIf(!hasEtcd())('a log in an etcd behind TLS', () => {
  const logs = new EtcdLogs();

  test('is reached only with the right CA and client certificate', async () => {
    await withTemporaryFolder(async (folder) => {
      const file = (name: string): string => join(folder, name);
      const made = makeCertificates(folder);
      const etcd = await EtcdProcess.start(
        `--cert-file=${file('server.crt')}`,
        `--key-file=${file('server.key')}`,
        `--trusted-ca-file=${file('ca.crt')}`,
        '--client-cert-auth',
      );
      try {
        const log = await logs.open(etcd.endpoint, '/tls', { tls: made });
        await log.append([entry('one')], logStart);
        expect(texts(await readBehind(log, logStart, 1))).toEqual(['one']);
        const refused = (options: object, message: RegExp): Promise<void> =>
          expect(logs.open(etcd.endpoint, '/tls', { openTimeoutMs: 6_000, ...options })).rejects.toMatchObject({
            code: 'unavailable',
            message: expect.stringMatching(message),
          });
        await Promise.all([
          refused({ tls: { cert: made.cert, key: made.key } }, /certificate/),
          refused({ tls: { ca: made.ca } }, new RegExp(etcd.endpoint)),
          refused({}, new RegExp(etcd.endpoint)),
        ]);
      } finally {
        await logs.closeAll();
        await etcd.dispose();
      }
    });
  });
});
