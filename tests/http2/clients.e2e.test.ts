import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled, ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/*
 * HTTP/2 clients of other authors against the built command, without and with TLS. The other tests have many calls of
 * grpc-js, of etcd's client in Go (etcdctl) and of the library.
 */

const clientTimeoutMs = 60_000;
const large = 'x'.repeat(1_000_000);

function hasProgram(program: string, debianPackage: string): boolean {
  return isInstalled(spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0, debianPackage);
}

/** The output of a program that exits with 0. */
function run(program: string, ...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: clientTimeoutMs, maxBuffer: 1 << 26, env: { ...process.env, ETCDCTL_API: '3' } };
    execFile(program, args, options, (error, out, err) => {
      if (error === null) resolve(out);
      else reject(new Error(`${program}: ${error.message}\n${err}${out}`));
    });
  });
}

describe.each(['http', 'https'])('over %s', (scheme) => {
  let server: ServeProcess;
  let url: string;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tenure-clients-'));
    const tls = scheme === 'https' ? ['--auto-tls'] : [];
    const listen = [`--listen-client-urls=${scheme}://127.0.0.1:0`, `--data-dir=${folder}`];
    server = new ServeProcess(['serve', '--engine=file', ...listen, ...tls]);
    [url = ''] = await server.ready();
  });
  afterAll(async () => {
    await server.end();
    rmSync(folder, { recursive: true, force: true });
  });

  test.runIf(hasProgram('curl', 'curl'))('curl gets the health, and puts and gets a large value', async () => {
    const curl = ['--silent', '--show-error', '--fail', '--insecure', '--http2-prior-knowledge'];
    const status = await run('curl', ...curl, '--write-out', ' %{http_version}', `${url}/health`);
    expect(status).toMatch(/"health":\s*"true".* 2$/s);
    const post = (path: string, body: object): Promise<string> =>
      run('curl', ...curl, '--json', JSON.stringify(body), `${url}${path}`);
    const value = Buffer.from(large.slice(0, 60_000)).toString('base64');
    for (let i = 0; i < 20; i++) await post('/v3/kv/put', { key: Buffer.from(`k${i}`).toString('base64'), value });
    const range = { key: Buffer.from('k').toString('base64'), range_end: Buffer.from('l').toString('base64') };
    const reply = JSON.parse(await post('/v3/kv/range', range)) as { kvs: { value: string }[] };
    expect(reply.kvs.map((pair) => pair.value)).toEqual(Array.from({ length: 20 }, () => value));
  });

  test.runIf(hasProgram('nghttp', 'nghttp2-client'))('nghttp gets many answers on one connection', async () => {
    const output = await run('nghttp', '--no-verify-peer', '--stat', '--null-out', '--multiply=50', `${url}/version`);
    expect(output.match(/ 200 +\d+ \/version/g)).toHaveLength(50);
  });

  test.runIf(hasProgram('h2load', 'nghttp2-client'))('h2load has all its requests answered', async () => {
    const load = ['--requests=2000', '--clients=4', '--max-concurrent-streams=20', '--window-bits=10'];
    const output = await run('h2load', ...load, `${url}/metrics`);
    expect(output).toContain('2000 succeeded, 0 failed, 0 errored, 0 timeout');
    expect(output).toMatch(/status codes: 2000 2xx/);
  });

  test('the client of Node gets answers within the smallest windows', async () => {
    const session = connect(url, { rejectUnauthorized: false, settings: { initialWindowSize: 100 } });
    const bodies = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const stream = session.request({ ':path': '/metrics' });
        let body = '';
        for await (const chunk of stream) body += String(chunk);
        return body;
      }),
    );
    for (const body of bodies) expect(body).toContain('process_cpu_seconds_total');
    session.destroy();
  });

  test.runIf(isInstalled(spawnSync('etcdctl', ['version']).status === 0, 'etcd-client'))(
    'etcdctl puts, gets and keeps a lease',
    async () => {
      const trust = scheme === 'https' ? [`--cacert=${join(folder, 'fixtures/client/cert.pem')}`] : [];
      const etcdctl = (...args: string[]): Promise<string> => run('etcdctl', `--endpoints=${url}`, ...trust, ...args);
      await etcdctl('put', 'large', large.slice(0, 100_000));
      expect((await etcdctl('get', 'large', '--print-value-only')).trim()).toBe(large.slice(0, 100_000));
      const lease = /lease (\w+) granted/.exec(await etcdctl('lease', 'grant', '60'))?.[1] ?? '';
      expect(await etcdctl('lease', 'keep-alive', lease, '--once')).toContain('keepalived with TTL(60)');
    },
  );
});
