import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, hasPostgres, PostgresCluster, type ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enableAuth, logIn, rootContext, rootPassword } from '../../conformance/cases/accounts.ts';
import { CaseContext } from '../../conformance/cases/case-context.ts';
import type { RunningServer } from '../../conformance/servers/server-options.ts';
import { runCommand } from '../running-command.ts';
import { ServeSandbox } from '../serve-sandbox.ts';

const limits = { timeout: 120_000 };

/** As the calls of the conformance suite need it. */
async function running(server: ServeProcess): Promise<RunningServer> {
  const [url = ''] = await server.ready();
  const address = new URL(url).host;
  const stop = (): Promise<void> => server.end().then(() => undefined);
  return { kind: 'tenure', address, name: 'default', advertisedClientUrl: url, pid: server.pid, stop };
}

/** The code with which root cannot log in, or 'in'. */
async function login(server: RunningServer, password: string): Promise<string> {
  const t = new CaseContext(server, '');
  try {
    return await logIn(t, 'root', password).then(
      () => 'in',
      (error: Error) => error.message,
    );
  } finally {
    t.client.close();
  }
}

describe.skipIf(!hasPostgres() || !hasEtcd()).concurrent('a lost password of root', limits, () => {
  const sandbox = new ServeSandbox();
  let database: PostgresCluster;
  let etcd: EtcdProcess;

  beforeAll(async () => {
    [database, etcd] = await Promise.all([PostgresCluster.create(), EtcdProcess.start()]);
  });

  afterAll(async () => {
    await sandbox.remove();
    await database?.dispose();
    await etcd?.dispose();
  });

  const places: readonly (readonly [string, () => readonly string[]])[] = [
    ['a data folder', () => ['--data-dir', sandbox.newFolder()]],
    ['PostgreSQL', () => ['--engine', database.url()]],
    ['etcd', () => ['--engine', `etcd://${etcd.endpoint}/recovered`]],
  ];

  test.each(places)('is set again in %s', async (_name, placeOf) => {
    const place = placeOf();
    const start = (): Promise<RunningServer> =>
      running(sandbox.serve([...place, '--bcrypt-cost=4', '--listen-client-urls', 'http://127.0.0.1:0']));
    const before = await start();
    await enableAuth(before);
    const root = await rootContext(before, '');
    await root.kv.put({ key: root.key('kept'), value: root.key('1') });
    root.client.close();

    const busy = await runCommand(['auth', 'recover-root', ...place]);
    expect({ code: busy.code, out: busy.out }).toEqual({ code: 1, out: '' });
    expect(await login(before, rootPassword)).toBe('in');
    await before.stop();

    const made = await runCommand(['auth', 'recover-root', ...place, '-w', 'json']);
    expect(made).toMatchObject({ code: 0, err: '' });
    const { password } = JSON.parse(made.out) as { password: string };
    const file = join(sandbox.root, `password-of-${place.length}-${Date.now()}`);
    writeFileSync(file, `${password}x\nsecond line\n`, { mode: 0o600 });
    const given = await runCommand(['auth', 'recover-root', ...place, '--password-file', file]);
    expect(given).toMatchObject({ code: 0, err: '', out: expect.stringContaining('authentication is enabled') });
    expect(given.out).not.toContain(readFileSync(file, 'utf8').split('\n')[0]);

    const after = await start();
    expect(await login(after, rootPassword)).toContain('authentication failed');
    expect(await login(after, password)).toContain('authentication failed');
    const t = new CaseContext(after, '');
    const token = await logIn(t, 'root', `${password}x`);
    const again = t.as({ token });
    expect((await again.kv.range({ key: again.key('kept') })).kvs).toHaveLength(1);
    expect((await again.auth.authStatus({})).enabled).toBe(true);
    again.client.close();
    t.client.close();
    await after.stop();
  });

  test('is not set in a folder without a log, nor without saying where', async () => {
    const none = await runCommand(['auth', 'recover-root', '--data-dir', sandbox.newFolder()]);
    expect(none).toMatchObject({ code: 1, out: '', err: expect.stringContaining('holds no log') });
    expect(await runCommand(['auth', 'recover-root'])).toMatchObject({ code: 2, out: '' });
  });
});
