import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { ServeProcess, testedCommand } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdVersion, startEtcd } from '../../conformance/servers/etcd-server.ts';
import type { RunningServer } from '../../conformance/servers/server-options.ts';
import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { type CommandResult, runCommand } from '../running-command.ts';

const secret = 'correct horse';
const options = { bcryptCost: 4 };
const env = { ...process.env, ETCDCTL_API: '3' };
const starts = { Tenure: startTenure, ...(etcdVersion() === undefined ? {} : { etcd: startEtcd }) };
const hasEtcdctl = spawnSync('etcdctl', ['version'], { env }).status === 0;

describe.each(Object.entries(starts))('users and roles on %s', { timeout: 60_000 }, (kind, start) => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await start(options);
  });
  afterAll(() => server.stop());

  const tenure = (argv: readonly string[], stdin = '', more: Record<string, string> = {}): Promise<CommandResult> => {
    return runCommand(argv, { stdin, env: { TENURE_ENDPOINTS: server.address, ...more } });
  };
  const ok = async (...argv: string[]): Promise<string> => {
    const result = await tenure(argv);
    expect(result, argv.join(' ')).toMatchObject({ code: 0, err: '' });
    return result.out;
  };

  test('are added, shown, changed and deleted', async () => {
    const added = await tenure(['user', 'add', 'ada', '--new-password-stdin'], `${secret}\n`);
    expect(added).toEqual({ code: 0, out: 'User ada created\n', err: '' });
    expect(await ok('user', 'add', 'machine', '--no-password')).toBe('User machine created\n');
    expect(await ok('user', 'list')).toBe('ada\nmachine\n');
    expect(await ok('role', 'add', 'reader')).toBe('Role reader created\n');
    const grant = ['role', 'grant-permission', 'reader'];
    expect(await ok(...grant, 'readwrite', 'a')).toBe('Role reader updated\n');
    await ok(...grant, 'read', 'c', 'f');
    await ok(...grant, 'write', 'jobs/', '--prefix');
    await ok(...grant, 'read', 'x', '--from-key');
    await ok('user', 'grant-role', 'ada', 'reader');
    if (hasEtcdctl) {
      const flags = [`--endpoints=${server.address}`];
      for (const argv of [
        ['role', 'get', 'reader'],
        ['role', 'list'],
        ['user', 'get', 'ada'],
        ['user', 'list'],
      ]) {
        expect(await ok(...argv), argv.join(' ')).toBe(
          execFileSync('etcdctl', [...flags, ...argv], { env }).toString(),
        );
      }
      const detail = execFileSync('etcdctl', [...flags, 'user', 'get', 'ada', '--detail'], { env }).toString();
      expect(await ok('user', 'get', 'ada', '--detail')).toBe(detail);
    }
    const role = JSON.parse(await ok('role', 'get', 'reader', '-w', 'json')) as { perm: unknown[] };
    expect(role.perm).toHaveLength(4);
    const revoke = ['role', 'revoke-permission', 'reader'];
    expect(await ok(...revoke, 'a')).toBe('Permission of key a is revoked from role reader\n');
    expect(await ok(...revoke, 'c', 'f')).toBe('Permission of range [c, f) is revoked from role reader\n');
    expect(await ok(...revoke, 'jobs/', '--prefix')).toMatch(/range \[jobs\/, jobs0\) is revoked/);
    expect(await ok(...revoke, 'x', '--from-key')).toMatch(/range \[x, <open ended> is revoked/);
    expect(await ok('role', 'get', 'reader')).toBe('Role reader\nKV Read:\nKV Write:\n');
    expect(await ok('user', 'revoke-role', 'ada', 'reader')).toBe('Role reader is revoked from user ada\n');
    expect(await ok('user', 'get', 'ada')).toBe('User: ada\nRoles:\n');
    const changed = await tenure(['user', 'passwd', 'ada', '--new-password-stdin'], 'other\r\n');
    expect(changed).toEqual({ code: 0, out: 'Password updated\n', err: '' });
    expect(await ok('role', 'delete', 'reader')).toBe('Role reader deleted\n');
    for (const name of ['ada', 'machine']) expect(await ok('user', 'delete', name)).toBe(`User ${name} deleted\n`);
    const unknown = await tenure(['user', 'get', 'ada']);
    expect([unknown.code, unknown.err]).toEqual([1, 'Error: etcdserver: user name not found\n']);
  });

  test('authentication is enabled, and each way to give a password works', async () => {
    const noRoot = await tenure(['auth', 'enable']);
    expect([noRoot.code, noRoot.err]).toEqual([
      1,
      'Error: etcdserver: root user does not exist (tenure user add root)\n',
    ]);
    await tenure(['user', 'add', 'root', '--new-password-stdin'], secret);
    await ok('user', 'grant-role', 'root', 'root');
    expect(await ok('auth', 'enable')).toBe('Authentication Enabled\n');
    const put = ['put', 'k', 'v'];
    const done = { code: 0, out: 'OK\n', err: '' };
    expect(await tenure([...put, '--user', `root:${secret}`])).toEqual(done);
    expect(await tenure([...put, '--user', 'root', '--password', secret])).toEqual(done);
    expect(await tenure([...put, '--user', 'root', '--password-stdin'], `${secret}\n`)).toEqual(done);
    expect(await tenure(put, '', { TENURE_USER: 'root', TENURE_PASSWORD: secret })).toEqual(done);
    expect(await tenure(put, '', { TENURE_USER: `root:${secret}` })).toEqual(done);
    // What follows the password in stdin is the value, and the next password.
    expect(await tenure(['put', 'two', '--user', 'root', '--password-stdin'], `${secret}\nline\n`)).toEqual(done);
    const asRoot = { TENURE_USER: 'root', TENURE_PASSWORD: secret };
    expect((await tenure(['get', 'two', '--print-value-only'], '', asRoot)).out).toBe('line\n\n');
    const add = ['user', 'add', 'ada', '--new-password-stdin', '--user', 'root', '--password-stdin'];
    expect((await tenure(add, `${secret}\nnew\n`)).out).toBe('User ada created\n');
    expect((await tenure(['get', 'k', '--user', 'ada:new'])).err).toBe('Error: etcdserver: permission denied\n');
    if (kind === 'Tenure') {
      const { out } = await tenure(['auth', 'status'], '', asRoot);
      expect(out).toMatch(/^Authentication Status: true\nAuthRevision: \d+\n$/);
    }
    expect((await tenure(['auth', 'disable'], '', asRoot)).out).toBe('Authentication Disabled\n');
    for (const name of ['root', 'ada']) await ok('user', 'delete', name);
  });
});

describe('a password', { timeout: 60_000 }, () => {
  const run = (argv: readonly string[], stdin = '', env: Record<string, string> = {}): Promise<CommandResult> => {
    return runCommand([...argv, '--endpoints', '127.0.0.1:1'], { stdin, env });
  };

  test.each([
    [['get', 'a', '--user', 'ada'], 'no password for ada: set TENURE_PASSWORD'],
    [['get', 'a', '--password', secret], 'a password needs a user'],
    [['get', 'a', '--user', 'ada', '--password', secret, '--password-stdin'], 'exclude each other'],
    [['user', 'add', `ada:${secret}`], 'a name with a colon'],
    [['user', 'add', 'ada'], 'is asked for at a terminal'],
    [['user', 'add', 'ada', '--no-password', '--new-password-stdin'], 'exclude each other'],
    [['user', 'add', 'ada', '--new-password-stdin'], 'the new password is empty'],
    [['lock', 'a', '--user', 'ada', '--password-stdin', '--', 'true'], 'stdin belongs to COMMAND'],
  ])('%j is a usage error without the password', async (argv, words) => {
    const separator = argv.indexOf('--');
    const at = separator < 0 ? argv.length : separator;
    const { code, out, err } = await run([...argv.slice(0, at)], '').then((result) =>
      separator < 0 ? result : runCommand(argv),
    );
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(words);
    expect(err).not.toContain(secret);
  });

  test('in a variable without text counts as none', async () => {
    const { code, err } = await run(['get', 'a', '--user', 'ada'], '', { TENURE_PASSWORD: '' });
    expect([code, err]).toEqual([2, expect.stringContaining('no password for ada')]);
  });

  test('is in no help text, and in no error about a server', async () => {
    const variables = { TENURE_USER: `ada:${secret}`, TENURE_PASSWORD: secret };
    for (const argv of [['--help'], ['user', 'add', '--help'], ['get', 'a'], ['status']]) {
      const { out, err } = await run(argv, '', variables);
      expect(out + err, argv.join(' ')).not.toContain(secret);
    }
    expect((await run(['get', 'a', '--user', `ada:${secret}`])).err).not.toContain(secret);
  });

  test.skipIf(process.platform !== 'linux')('of the command line is not in the list of processes', async () => {
    const server = await startTenure();
    try {
      // Without users it is not needed, and the watch goes on until it is stopped.
      const argv = ['watch', 'k', '--rev', '1', '--user', `ada:${secret}`, '--endpoints', server.address];
      const running = new ServeProcess(argv);
      await runCommand(['put', 'k', 'v', '--endpoints', server.address]);
      await running.printed('PUT');
      expect(readFileSync(`/proc/${running.pid}/cmdline`, 'utf8')).toMatch(/^tenure\0*$/);
      await running.end();
    } finally {
      await server.stop();
    }
  });

  test('is asked for at a terminal, which does not show it', async ({ skip }) => {
    if (spawnSync('script', ['--version']).status !== 0) skip('script (bsdutils) is not installed');
    const server = await startTenure(options);
    try {
      const command = [process.execPath, testedCommand(), 'user', 'add', 'ada', '--endpoints', server.address];
      // The program script runs it at a terminal of its own and passes on what is typed.
      const running = promisify(execFile)('script', ['-qec', command.join(' '), '/dev/null'], { encoding: 'utf8' });
      let seen = '';
      let typed = 0;
      running.child.stdout?.on('data', (text: string) => {
        seen += text;
        if (typed === 0 && seen.includes('New password of ada: ')) {
          typed += 1;
          running.child.stdin?.write(`no\u0015wrong\u007f\u007f\u007f\u007f\u007f${secret}\u001a\r`);
        }
        if (typed === 1 && seen.includes('The same again: ')) {
          typed += 1;
          running.child.stdin?.write(`${secret}\r`);
        }
      });
      const { stdout } = await running;
      expect(stdout).toBe('New password of ada: \r\nThe same again: \r\nUser ada created\r\n');
      const { address } = server;
      const root = ['--endpoints', address];
      await runCommand(['user', 'add', 'root', '--new-password-stdin', ...root], { stdin: 'r' });
      await runCommand(['user', 'grant-role', 'root', 'root', ...root]);
      await runCommand(['auth', 'enable', ...root]);
      const login = await runCommand(['get', 'k', '--user', `ada:${secret}`, ...root]);
      expect(login.err).toBe('Error: etcdserver: permission denied\n');
    } finally {
      await server.stop();
    }
  });
});
