import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { freePort, ServeProcess, TestAuthority, type TestCertificate } from '@tenure/test-support';
import { EtcdClient } from 'tenure/etcd';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { runCommand } from '../running-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'tenure-tls-'));
const authority = new TestAuthority(folder);
const server = authority.issue('server', { usage: 'serverAuth' });
const ada = authority.issue('ada', { usage: 'clientAuth' });
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const itsFiles = ({ certFile, keyFile }: TestCertificate): string[] => ['--cert-file', certFile, '--key-file', keyFile];
const mutual = [...itsFiles(server), '--trusted-ca-file', authority.caFile, '--client-cert-auth'];

/** A server on a port of its own with TLS; its URL, as it prints it. */
async function serve(flags: readonly string[], under: readonly string[] = []): Promise<string> {
  const url = `https://127.0.0.1:${await freePort()}`;
  const args = ['serve', '--engine', 'memory', '--listen-client-urls', url, ...flags];
  const running = new ServeProcess(args, {}, under);
  cleanups.push(() => running.end());
  const [printed = ''] = await running.ready();
  expect(printed).toBe(url);
  return url;
}

function openClient(url: string, ca: string, client?: TestCertificate): EtcdClient {
  const own = client && { cert: readFileSync(client.certFile), key: readFileSync(client.keyFile) };
  const made = new EtcdClient({ endpoints: [url], tls: { ca: readFileSync(ca), ...own } });
  cleanups.push(() => made.close());
  return made;
}

/** The output of etcdctl, or why it failed. */
function etcdctl(url: string, ...args: readonly string[]): Promise<string> {
  const all = ['--endpoints', url, '--command-timeout', '3s', ...args];
  return new Promise((resolve) => {
    execFile('etcdctl', all, { env: { ...process.env, ETCDCTL_API: '3' } }, (error, out, err) =>
      resolve(error === null ? out.trim() : `failed: ${err}`),
    );
  });
}

describe('clients', { timeout: 60_000 }, () => {
  test('etcdctl, the command and the library connect with the certificates of both sides', async () => {
    const url = await serve(mutual);
    const files = ['--cacert', authority.caFile, '--cert', ada.certFile, '--key', ada.keyFile];
    expect(await etcdctl(url, ...files, 'put', 'a', '1')).toBe('OK');
    expect(await etcdctl(url, ...files, 'get', 'a')).toBe('a\n1');
    expect(await etcdctl(url, ...files, 'member', 'list')).toContain(url);
    expect(await runCommand(['get', 'a', '--endpoints', url, ...files])).toMatchObject({ code: 0, out: 'a\n1\n' });
    const client = openClient(url, authority.caFile, ada);
    expect((await client.kv.get('a')).kvs).toHaveLength(1);
  });

  test('with no certificate, one of another authority, or a server of another name are refused', async () => {
    const other = new TestAuthority(folder, 'other').issue('ada');
    const url = await serve(mutual);
    const trust = ['--cacert', authority.caFile];
    expect(await etcdctl(url, ...trust, 'put', 'a', '1')).toContain('failed');
    const stranger = ['--cert', other.certFile, '--key', other.keyFile];
    expect(await etcdctl(url, ...trust, ...stranger, 'put', 'a', '1')).toContain('failed');
    expect((await runCommand(['get', 'a', '--endpoints', url, ...trust])).code).toBe(3);
    const elsewhere = await serve(itsFiles(authority.issue('s', { alternativeNames: 'DNS:other.example.com' })));
    expect(await etcdctl(elsewhere, ...trust, 'put', 'a', '1')).toContain('failed');
    expect((await runCommand(['get', 'a', '--endpoints', elsewhere, ...trust])).err).toMatch(/certificate/i);
  });

  test('the library reaches a server by the name in its certificate, when that is not its address', async () => {
    const { certFile, keyFile } = authority.issue('named', { alternativeNames: 'DNS:tenure.example' });
    const url = await serve(itsFiles({ certFile, keyFile }));
    const ca = readFileSync(authority.caFile);
    await using named = new EtcdClient({ endpoints: url, tls: { ca, serverName: 'tenure.example' } });
    await named.kv.put('a', '1');
    for (const serverName of ['other.example', undefined]) {
      const tls = { ca, ...(serverName && { serverName }) };
      await using other = new EtcdClient({ endpoints: url, timeoutMs: 2_000, tls });
      await expect(other.kv.get('a')).rejects.toMatchObject({ name: 'EtcdError', etcdCode: 'unreachable' });
    }
    expect((await named.kv.getOne('a'))?.value).toBe('1');
  });

  test('trust the certificate that --auto-tls makes, also after a restart', async () => {
    const dataDir = join(folder, 'data');
    const file = join(dataDir, 'fixtures', 'client', 'cert.pem');
    const flags = ['--engine', 'file', '--data-dir', dataDir, '--auto-tls'];
    expect(await etcdctl(await serve(flags), '--cacert', file, 'put', 'a', '1').catch(String)).toBe('OK');
    const made = readFileSync(file, 'utf8');
    for (const cleanup of cleanups.splice(0)) await cleanup();
    expect(await etcdctl(await serve(flags), '--cacert', file, 'get', 'a')).toBe('a\n1');
    expect(readFileSync(file, 'utf8')).toBe(made);
  });
});

test('a certificate is replaced under load: no request fails, and new connections get the new one', async () => {
  const mounted = join(folder, 'mounted');
  mkdirSync(mounted);
  const swap = (version: string, { certFile, keyFile }: TestCertificate): void => {
    const target = join(mounted, version);
    mkdirSync(target);
    copyFileSync(certFile, join(target, 'tls.crt'));
    copyFileSync(keyFile, join(target, 'tls.key'));
    symlinkSync(version, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
  };
  swap('v0', server);
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(mounted, name));
  const url = await serve(itsFiles({ certFile: join(mounted, 'tls.crt'), keyFile: join(mounted, 'tls.key') }));
  const port = Number(new URL(url).port);
  const nameNow = async (): Promise<string> => {
    const socket = connectTls({ host: '127.0.0.1', port, ca: readFileSync(authority.caFile) });
    await once(socket, 'secureConnect');
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return String(CN);
  };
  let isOver = false;
  let done = 0;
  const lasting = openClient(url, authority.caFile);
  const load = async (client: EtcdClient): Promise<void> => {
    while (!isOver) {
      await client.kv.put(`key ${done}`, 'value');
      done += 1;
    }
  };
  const fresh = async (): Promise<void> => {
    while (!isOver) {
      const client = new EtcdClient({ endpoints: [url], tls: { ca: readFileSync(authority.caFile) } });
      await client.kv.put('fresh', 'value');
      client.close();
      done += 1;
    }
  };
  const working = Promise.all([...Array.from({ length: 8 }, () => load(lasting)), fresh(), fresh()]);
  try {
    for (const version of ['v1', 'v2', 'v3']) {
      swap(version, authority.issue(version));
      const beganMs = performance.now();
      await expect.poll(nameNow, { timeout: 10_000, interval: 50 }).toBe(version);
      expect(performance.now() - beganMs).toBeLessThan(5000);
    }
    writeFileSync(join(mounted, 'tls.crt'), 'broken');
    await new Promise<void>((resolve) => setTimeout(resolve, 2500));
    expect(await nameNow()).toBe('v3');
  } finally {
    isOver = true;
    await working;
  }
  expect(done).toBeGreaterThan(100);
}, 60_000);

test('strangers that hold all connections are ended in time, and a client from before is served', async () => {
  // The limit of open files leaves 320 connections.
  const url = await serve(mutual, ['prlimit', '--nofile=512:512']);
  const port = Number(new URL(url).port);
  const client = openClient(url, authority.caFile, ada);
  const put = (): Promise<unknown> => client.kv.put('a', '1');
  await put();
  let open = 0;
  let refused = 0;
  const strangers: Socket[] = [];
  cleanups.push(() => strangers.forEach((socket) => socket.destroy()));
  for (let at = 0; at < 10_000; at += 500) {
    const batch = Array.from({ length: 500 }, () => connectPlain(port, '127.0.0.1'));
    strangers.push(...batch);
    for (const socket of batch) {
      open += 1;
      socket.on('error', () => {});
      socket.on('close', () => {
        open -= 1;
        refused += 1;
      });
      // The first bytes of a ClientHello, and never the rest.
      socket.write(Buffer.from([22, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3]));
      socket.resume();
    }
    await expect.poll(() => open, { timeout: 10_000 }).toBeLessThanOrEqual(320);
    await put();
  }
  expect(refused).toBeGreaterThanOrEqual(10_000 - 320);
  await expect.poll(() => open, { timeout: 20_000 }).toBe(0);
  const files = ['--cacert', authority.caFile, '--cert', ada.certFile, '--key', ada.keyFile];
  expect(await etcdctl(url, ...files, 'get', 'a')).toBe('a\n1');
}, 90_000);

test.each([
  ['a certificate that is missing', ['--cert-file', '/there/is/none', '--key-file', server.keyFile], /ENOENT/],
  ['a key of another', ['--cert-file', server.certFile, '--key-file', ada.keyFile], /no certificate with its key/],
])('a server does not start with %s', async (_what, flags, message) => {
  const args = ['serve', '--engine', 'memory', '--listen-client-urls', 'https://127.0.0.1:0', ...flags];
  const { code, err } = await new ServeProcess(args).ended;
  expect(code).toBe(1);
  expect(err).toMatch(message);
});
