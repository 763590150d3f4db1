import { once } from 'node:events';
import { chmod, mkdir, stat, watch, writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { ProgramEnd, ServeProcess } from '@tenure/test-support';
import { afterAll, describe, expect, test } from 'vitest';
import { StallMeter } from './cluster/stall-meter.ts';
import { runCommand, RunningCommand } from './running-command.ts';
import { ServeSandbox } from './serve-sandbox.ts';

/** On a machine that is not overloaded. */
const closeLimitMs = 5000;
const limits = { timeout: 120_000 };
const anyPort = ['--listen-client-urls', 'http://127.0.0.1:0'];

const sandbox = new ServeSandbox();
const newFolder = (): string => sandbox.newFolder();
const serve = (args: readonly string[], env?: Record<string, string>): ServeProcess => sandbox.serve(args, env);

afterAll(() => sandbox.remove());

describe.concurrent('the start', limits, () => {
  test('prints its addresses, with the ports that the system chose, and nothing else', async () => {
    const folder = newFolder();
    const server = serve(['--data-dir', folder, '--listen-client-urls', 'http://127.0.0.1:0,http://[::1]:0']);
    const urls = await server.ready();
    expect(urls).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      expect.stringMatching(/^http:\/\/\[::1]:\d+$/),
    ]);
    for (const url of urls) expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(await server.end()).toEqual({
      code: 0,
      signal: null,
      out: `ready to serve client requests on ${urls.join(',')}\n`,
      err: '',
    });
  });

  test('reads settings from the environment; flags take precedence', async () => {
    const [fromFlag, fromEnv] = [newFolder(), newFolder()];
    const env = { TENURE_DATA_DIR: fromEnv, TENURE_LISTEN_CLIENT_URLS: 'http://127.0.0.1:0', TENURE_NAME: 'from-env' };
    await serve([], env).ready();
    await serve(['--data-dir', fromFlag], env).ready();
    expect((await stat(fromEnv)).isDirectory()).toBe(true);
    expect((await stat(fromFlag)).isDirectory()).toBe(true);
  });

  test('answers HTTP and gRPC on one port', async () => {
    const server = serve(['--engine', 'memory', ...anyPort]);
    const client = await sandbox.clientOf(server);
    const [url = ''] = await server.ready();
    expect((await client('lease', 'grant', '60', '--id', '1')).code).toBe(0);
    expect((await client('put', 'a', 'b', '--lease', '1')).out).toBe('OK\n');
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ health: 'true', reason: '' });
    expect(await (await fetch(`${url}/readyz`)).text()).toBe('ok\n');
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^tenure_lease_granted_total 1$/m);
    expect(metrics).toMatch(/^tenure_leases_in_memory 1$/m);
    expect(metrics).toMatch(/^tenure_keys 1$/m);
    expect(await (await fetch(`${url}/version`)).json()).toMatchObject({ etcdserver: '3.6.0', etcdcluster: '3.6.0' });
  });

  test('warns about an address that other machines can reach', async () => {
    const server = serve(['--engine', 'memory', '--listen-client-urls', 'http://0.0.0.0:0']);
    await server.ready();
    expect(server.err).toContain('Warning: http://0.0.0.0:0 is open to other machines without TLS');
    await server.match(/"msg":"open to other machines, and authentication is disabled/, 20_000);
  });

  test('logs JSON lines on stderr at the requested level', async () => {
    const server = serve(['--engine', 'memory', '--log-level', 'debug', ...anyPort]);
    await server.ready();
    const { err } = await server.end();
    for (const line of err.split('\n').slice(0, -1)) {
      expect(JSON.parse(line)).toMatchObject({ level: expect.stringMatching(/^(debug|info|warn|error)$/) });
    }
  });

  test.each([
    [['--listen-client-urls', 'https://127.0.0.1:0'], '--cert-file'],
    [['--listen-client-urls', 'unix:///tmp/x'], 'unix socket'],
    [['--engine', 'postgres'], 'must be an address: postgres://'],
    [['--quota-backend-bytes', 'lots'], '--quota-backend-bytes "lots" must be a whole number'],
    [['--no-such-flag'], 'unknown flag --no-such-flag'],
  ])('%j is refused with exit code 2 and one line', async (args, text) => {
    const { code, out, err } = await serve([...args, '--data-dir', newFolder()]).ended;
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^Error: [^\n]*\n$/);
    expect(err).toContain(text);
  });

  test('an address in use is refused with advice', async () => {
    const [url = ''] = await serve(['--engine', 'memory', ...anyPort]).ready();
    const { code, err } = await serve(['--engine', 'memory', '--listen-client-urls', url]).ended;
    expect(code).toBe(1);
    expect(err).toMatch(/^Error: .*EADDRINUSE.*or change --listen-client-urls or --listen-peer-urls\n$/);
  });

  test('help and version need no folder', async () => {
    const help = await serve(['--help']).ended;
    expect(help).toMatchObject({ code: 0, err: '' });
    expect(help.out).toContain('--listen-client-urls URL,...');
    expect(await serve(['--version']).ended).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });
});

describe.concurrent('the data folder', limits, () => {
  test('is created for its owner only', async () => {
    const folder = join(newFolder(), 'deep');
    await serve(['--data-dir', folder, ...anyPort]).ready();
    expect(((await stat(folder)).mode & 0o777).toString(8)).toBe('700');
  });

  test('that other users may read is refused with the command that fixes it', async () => {
    const folder = newFolder();
    await mkdir(folder);
    await writeFile(join(folder, 'something'), '');
    await chmod(folder, 0o755);
    const { code, err } = await serve(['--data-dir', folder, ...anyPort]).ended;
    expect(code).toBe(1);
    expect(err).toContain(`chmod 700 ${folder}`);
  });

  test('is used by one process at a time; a second one is refused without harm', async () => {
    const folder = newFolder();
    const first = serve(['--data-dir', folder, ...anyPort]);
    const client = await sandbox.clientOf(first);
    await client('put', 'a', '1');
    const { code, out, err } = await serve(['--data-dir', folder, ...anyPort]).ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^Error: [^\n]*\n$/);
    expect(err).toContain(folder);
    expect((await client('put', 'a', '2')).out).toBe('OK\n');
    expect((await client('get', 'a')).out).toBe('a\n2\n');
  });

  test('is free at once after kill -9, with all acknowledged writes', async () => {
    const folder = newFolder();
    const first = serve(['--data-dir', folder, ...anyPort]);
    const before = await sandbox.clientOf(first);
    await before('lease', 'grant', '600', '--id', 'a1', '--label', 'kept');
    await before('put', 'a', '1', '--lease', 'a1');
    expect((await first.end('SIGKILL')).signal).toBe('SIGKILL');
    const after = await sandbox.clientOf(serve(['--data-dir', folder, ...anyPort]));
    expect((await after('get', 'a')).out).toBe('a\n1\n');
    expect((await after('lease', 'timetolive', 'a1', '--keys')).out).toMatch(/label\(kept\), attached keys\(\[a\]\)/);
  });

  test('is accepted and not touched by the memory engine', async () => {
    const folder = newFolder();
    const first = serve(['--engine', 'memory', '--data-dir', folder, ...anyPort]);
    await (
      await sandbox.clientOf(first)
    )('put', 'a', '1');
    expect((await first.end()).code).toBe(0);
    const after = await sandbox.clientOf(serve(['--engine', 'memory', '--data-dir', folder, ...anyPort]));
    expect((await after('get', 'a')).out).toBe('');
  });
});

describe.concurrent('the end', limits, () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends open streams and exits 0 in time', async (signal) => {
    const server = serve(['--data-dir', newFolder(), ...anyPort]);
    const client = await sandbox.clientOf(server);
    const [url = ''] = await server.ready();
    await client('lease', 'grant', '600', '--id', 'a1');
    await client('put', 'a', '1');
    const watch = new RunningCommand(['watch', 'a', '--rev', '1', '--endpoints', url]);
    await watch.output('PUT\na\n1\n');
    const keepAlive = new RunningCommand(['lease', 'keep-alive', 'a1', '--endpoints', url]);
    await keepAlive.output('keepalived');
    const silent = await openSocket(url);
    expect((await endInTime(server, signal)).code).toBe(0);
    // The client reports that the server is gone, and does not claim that the lease is.
    expect((await watch.done).code).toBe(3);
    expect((await keepAlive.done).code).toBe(3);
    silent.destroy();
  });

  test('expires no lease of a client that cannot renew it during the shutdown', async () => {
    const folder = newFolder();
    const server = serve(['--data-dir', folder, ...anyPort]);
    const client = await sandbox.clientOf(server);
    const [url = ''] = await server.ready();
    const session = connectHttp2(url);
    session.on('error', () => undefined);
    await once(session, 'connect');
    const call = session.request({
      ':method': 'POST',
      ':path': '/etcdserverpb.KV/Put',
      'content-type': 'application/grpc',
    });
    call.on('error', () => undefined);
    // The server waits for the end of this call as for any other.
    call.write(Buffer.alloc(3));
    await client('lease', 'grant', '3', '--id', 'a1');
    const beganMs = performance.now();
    expect((await server.end('SIGTERM')).code).toBe(0);
    expect(performance.now() - beganMs).toBeGreaterThan(3_000);
    session.destroy();
    const { code, out } = await runCommand(['log', 'dump', '--data-dir', folder]);
    expect(code).toBe(0);
    expect(out).toContain('leaseGrant 00000000000000a1');
    expect(out).not.toContain('expireLeases');
  });

  test('a second signal ends it at once', async () => {
    const server = serve(['--engine', 'memory', ...anyPort]);
    await server.ready();
    const ended = server.end('SIGTERM');
    void server.end('SIGTERM');
    // The second signal may arrive when the process is about to exit and no longer handles signals.
    const { code, signal } = await ended;
    expect(signal === 'SIGTERM' || code !== null).toBe(true);
  });

  test('a signal before it is ready ends it too', async () => {
    const folder = newFolder();
    // The server creates its folder first. It then still has to open the log and its ports.
    const starts = created(folder);
    const server = serve(['--data-dir', folder, ...anyPort]);
    await starts;
    await endInTime(server, 'SIGTERM');
  });
});

/** Watches from the call on; resolves when the path exists. */
async function created(path: string): Promise<void> {
  for await (const { filename } of watch(dirname(path))) if (filename === basename(path)) return;
}

async function endInTime(server: ServeProcess, signal: NodeJS.Signals): Promise<ProgramEnd> {
  const stalls = new StallMeter(() => [server.pid]);
  const beganMs = performance.now();
  const end = await server.end(signal);
  const endedMs = performance.now();
  const owedMs = stalls.between(beganMs, endedMs);
  stalls.stop();
  expect(endedMs - beganMs).toBeLessThan(closeLimitMs + owedMs);
  return end;
}

/** A connection that never sends anything. */
function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => undefined);
      resolve(socket);
    });
  });
}
