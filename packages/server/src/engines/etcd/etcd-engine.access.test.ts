import assert from 'node:assert/strict';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entry, readBehind, texts } from '../testing/engine-case.ts';
import { withTemporaryFolder } from '../testing/temporary-folder.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';
import { makeCertificates } from './testing/make-certificates.ts';

const ada = { user: 'ada', password: 'engine' };
const bob = { user: 'bob', password: 'reader' };

describe.skipIf(!hasEtcd())('a log in an etcd that asks who one is', () => {
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
    assert.deepEqual(texts(await readBehind(log, one, 1)), ['two']);
  });

  test('without a user, with a wrong password or with too few rights it is refused, and told what to do', async () => {
    const refused = (prefix: string, credentials: typeof ada | undefined, message: RegExp): Promise<void> =>
      assert.rejects(logs.open(etcd.endpoint, prefix, credentials && { credentials }), {
        name: 'EngineError',
        code: 'unusable',
        message,
      });
    await refused('/guarded', undefined, /give --engine-user/);
    await refused('/guarded', { ...ada, password: 'wrong' }, /give the right user and password/);
    await refused('/other', ada, /role grant-permission ROLE readwrite \/other\/ --prefix=true/);
    await refused('/guarded', bob, /role grant-permission ROLE readwrite \/guarded\/ --prefix=true/);
  });

  test('a token that etcd has forgotten is asked for anew, also for the watch', async () => {
    const log = await logs.open(etcd.endpoint, '/guarded', { credentials: ada });
    let at = await log.append([entry('before')], await log.tail());
    const reading = readBehind(log, at, 2);
    await etcd.kill();
    await etcd.start();
    for (;;) {
      // The first request after the restart may find the connection of before it.
      const tail = await log.tail().catch(() => undefined);
      if (tail !== undefined) break;
    }
    at = await log.append([entry('after')], at);
    await log.append([entry('later')], at);
    assert.deepEqual(texts(await reading), ['after', 'later']);
  });
});

describe.skipIf(!hasEtcd())('a log in an etcd behind TLS', () => {
  const logs = new EtcdLogs();

  test('is reached with the right authority and certificate, and with nothing less', async () => {
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
        assert.deepEqual(texts(await readBehind(log, logStart, 1)), ['one']);
        const refused = (options: object, message: RegExp): Promise<void> =>
          assert.rejects(logs.open(etcd.endpoint, '/tls', { openTimeoutMs: 1_500, ...options }), {
            code: 'unavailable',
            message,
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
