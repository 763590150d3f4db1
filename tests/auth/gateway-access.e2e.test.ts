import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePorts, ServeProcess, TestAuthority } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** The base64 of a text, as JSON has bytes. */
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const refusal = (status: number, code: number, message: string): Answer => {
  return { status, text: JSON.stringify({ code, message }) };
};
const userEmpty = refusal(400, 3, 'etcdserver: user name is empty');
const denied = refusal(403, 7, 'etcdserver: permission denied');
const invalidToken = refusal(401, 16, 'etcdserver: invalid auth token');
const wrongPassword = refusal(400, 3, 'etcdserver: authentication failed, invalid user ID or password');
/** The text of etcd's server/embed/serve.go. */
const nameIgnored = {
  status: 400,
  text: 'CommonName of client sending a request against gateway will be ignored and not used as expected\n',
};

/**
 * Ada has a certificate with her name and may write `ada/` alone. The gateway refuses a certificate with a name, as
 * etcd does: behind a proxy it would be the proxy's.
 */
describe('the JSON gateway with authentication and client certificates', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-gateway-'));
  const authority = new TestAuthority(folder);
  const certificate = authority.issue('server', { usage: 'serverAuth' });
  const ada = authority.issue('ada', { usage: 'clientAuth' });
  const files = ['--cacert', authority.caFile, '--cert', ada.certFile, '--key', ada.keyFile];
  const tls = {
    ca: readFileSync(authority.caFile),
    cert: readFileSync(ada.certFile),
    key: readFileSync(ada.keyFile),
  };
  const auditFile = join(folder, 'audit.jsonl');
  let server: ServeProcess | undefined;
  let port = 0;
  let plain = '';

  const etcdctl = (...args: readonly string[]): Promise<string> => {
    const all = ['--endpoints', `https://127.0.0.1:${port}`, ...files, ...args];
    return run('etcdctl', all, { env: { ...process.env, ETCDCTL_API: '3' } }).then(({ stdout }) => stdout.trim());
  };

  /** With the certificate, by HTTP/1.1. */
  const postSecurely = (path: string, message: unknown): Promise<Answer> => {
    return new Promise((resolve, reject) => {
      const call = httpsRequest({ host: '127.0.0.1', port, path, method: 'POST', ...tls }, (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }));
      });
      call.on('error', reject).end(JSON.stringify(message));
    });
  };

  /** With the certificate, by HTTP/2. */
  const postOverHttp2 = (path: string, message: unknown): Promise<Answer> => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, tls);
    return new Promise<Answer>((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':method': 'POST', ':path': path });
      let status = 0;
      let text = '';
      stream.on('response', (headers) => (status = headers[':status'] ?? 0));
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      stream.on('end', () => resolve({ status, text })).on('error', reject);
      stream.end(JSON.stringify(message));
    }).finally(() => session.close());
  };

  /** Without TLS. */
  const post = async (path: string, message: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const reply = await fetch(plain + path, { method: 'POST', body: JSON.stringify(message), headers });
    return { status: reply.status, text: await reply.text() };
  };

  const put = (key: string): unknown => ({ key: base64(key), value: base64('1') });

  beforeAll(async () => {
    const [securePort = 0, plainPort = 0] = await freePorts(2);
    port = securePort;
    plain = `http://127.0.0.1:${plainPort}`;
    const secured = ['--cert-file', certificate.certFile, '--key-file', certificate.keyFile];
    const mutual = ['--trusted-ca-file', authority.caFile, '--client-cert-auth', '--audit-log', auditFile];
    const url = ['--listen-client-urls', `https://127.0.0.1:${port},${plain}`];
    server = new ServeProcess(['serve', '--engine', 'memory', ...url, ...secured, ...mutual]);
    await server.ready();
    await etcdctl('user', 'add', 'root:r');
    await etcdctl('user', 'grant-role', 'root', 'root');
    await etcdctl('user', 'add', 'ada:secret-of-ada');
    await etcdctl('role', 'add', 'writer');
    await etcdctl('role', 'grant-permission', 'writer', 'readwrite', '--prefix', 'ada/');
    await etcdctl('user', 'grant-role', 'ada', 'writer');
    await etcdctl('auth', 'enable');
  });
  afterAll(async () => {
    await server?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a certificate names a user for gRPC, and is refused at the gateway', async () => {
    expect(await etcdctl('put', 'ada/grpc', '1')).toBe('OK');
    expect(await postSecurely('/v3/kv/put', put('ada/json'))).toEqual(nameIgnored);
    expect(await postOverHttp2('/v3/kv/put', put('ada/json'))).toEqual(nameIgnored);
    expect(await post('/v3/kv/put', put('ada/json'))).toEqual(userEmpty);
    expect(await etcdctl('get', '--keys-only', '--prefix', 'ada/')).toBe('ada/grpc');
  });

  test('a token does, with and without its scheme, for what its user may do', async () => {
    const login = await post('/v3/auth/authenticate', { name: 'ada', password: 'secret-of-ada' });
    const { token } = JSON.parse(login.text) as { readonly token: string };
    for (const authorization of [token, `Bearer ${token}`]) {
      expect(await post('/v3/kv/put', put('ada/token'), { authorization })).toMatchObject({ status: 200 });
      expect(await post('/v3/kv/put', put('bob/token'), { authorization })).toEqual(denied);
      expect(await post('/v3/auth/user/list', {}, { authorization })).toEqual(denied);
    }
    expect(await post('/v3/kv/put', put('ada/x'), { authorization: `${token}x` })).toEqual(invalidToken);
    expect(await post('/v3/auth/authenticate', { name: 'ada', password: 'guessed-secret' })).toEqual(wrongPassword);
  });

  test('the audit log has its requests with the user of the token, and no password', async () => {
    const read = (): Readonly<Record<string, unknown>>[] => {
      const lines = readFileSync(auditFile, 'utf8').trim().split('\n');
      return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    };
    await expect.poll(() => read().filter(({ method }) => method === 'Auth/Authenticate').length).toBe(2);
    const puts = read().filter(({ method }) => method === 'KV/Put');
    expect(puts.map(({ by, allowed }) => [by, allowed])).toEqual([
      ['ada', true],
      ['', false],
      ['ada', true],
      ['ada', false],
      ['ada', true],
      ['ada', false],
      ['', false],
    ]);
    expect(readFileSync(auditFile, 'utf8')).not.toMatch(/secret/);
  });
});
