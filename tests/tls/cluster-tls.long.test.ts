import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, createServer } from 'node:tls';
import {
  EtcdProcess,
  freePort,
  hasEtcd,
  ServeProcess,
  TestAuthority,
  type TestCertificate,
} from '@tenure/test-support';
import { EtcdClient } from 'tenure/etcd';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'tenure-cluster-tls-'));
const authority = new TestAuthority(folder);
const shown = authority.issue('server');
const ada = authority.issue('ada', { usage: 'clientAuth' });
const other = new TestAuthority(folder, 'other');
const expired = authority.issue('expired', { isExpired: true });
const cleanups: (() => unknown)[] = [];
let etcd: EtcdProcess;
let logs = 0;

beforeAll(async () => {
  if (hasEtcd()) etcd = await EtcdProcess.start();
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  if (hasEtcd()) await etcd.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** An empty log. */
function newLog(): string {
  logs += 1;
  return `etcd://${etcd.endpoint}/log${logs}`;
}

const peerFlags = ({ certFile, keyFile }: TestCertificate, caFile = authority.caFile): string[] => [
  ...['--peer-cert-file', certFile, '--peer-key-file', keyFile, '--peer-trusted-ca-file', caFile],
];
/** A server takes only clients with a certificate. */
const clientFlags = ({ certFile, keyFile }: TestCertificate): string[] => [
  ...['--cert-file', certFile, '--key-file', keyFile, '--trusted-ca-file', authority.caFile, '--client-cert-auth'],
];
const allFlags = [...clientFlags(shown), ...peerFlags(shown)];

interface Started {
  readonly url: string;
  readonly process: ServeProcess;
}

/** Starts a server on this log; not necessarily ready. */
async function start(log: string, name: string, flags: readonly string[], scheme = 'https'): Promise<Started> {
  const url = `${scheme}://127.0.0.1:${await freePort()}`;
  const own = ['--name', name, '--engine', log, '--listen-client-urls', url, '--data-dir', join(folder, name)];
  const process = new ServeProcess(['serve', ...own, ...flags]);
  cleanups.push(() => process.end());
  return { url, process };
}

async function ready(started: Started): Promise<Started> {
  await started.process.ready();
  return started;
}

function openClient(urls: readonly string[]): EtcdClient {
  const tls = { ca: readFileSync(authority.caFile), cert: readFileSync(ada.certFile), key: readFileSync(ada.keyFile) };
  const client = new EtcdClient({ endpoints: [...urls], tls });
  cleanups.push(() => client.close());
  return client;
}

/** What the server has logged, once it has logged this, or after a while. */
async function logged(process: ServeProcess, text: RegExp): Promise<string> {
  const untilMs = performance.now() + 20_000;
  while (!text.test(process.err) && performance.now() < untilMs) {
    await new Promise<void>((resolve) => setTimeout(resolve, 50));
  }
  return process.err;
}

const refused = /may not accept the certificate of this client|it takes only clients with a certificate/;

/** A process between the servers with a certificate that they trust. It ends TLS and passes the bytes on. */
async function startRelay(to: string): Promise<string> {
  const { port: targetPort, protocol } = new URL(to);
  const { certFile, keyFile } = authority.issue('relay');
  const own = { cert: readFileSync(certFile), key: readFileSync(keyFile), ca: readFileSync(authority.caFile) };
  const target = { host: '127.0.0.1', port: Number(targetPort) };
  const sockets = new Set<Socket>();
  const server = createServer({ ...own, ALPNProtocols: ['h2'] }, (near) => {
    const far = protocol === 'https:' ? connectTls({ ...target, ...own, ALPNProtocols: ['h2'] }) : connectPlain(target);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => [near, far].forEach((each) => each.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.runIf(hasEtcd())('servers reach each other over TLS', { timeout: 90_000 }, () => {
  test('at the https addresses of clients, with their certificates, also after the leader has changed', async () => {
    const log = newLog();
    const started = await Promise.all(['a', 'b', 'c'].map((name) => start(log, name, allFlags)));
    await Promise.all(started.map(ready));
    for (const { url } of started) await openClient([url]).kv.put('written at', url);
    const [first] = started;
    await first?.process.end();
    const left = started.slice(1).map(({ url }) => url);
    for (const url of left) {
      await expect
        .poll(async () => (await openClient([url]).kv.put('after', url).catch(String)) !== undefined, {
          timeout: 20_000,
        })
        .toBe(true);
    }
    expect((await openClient(left.slice(1)).kv.get('after')).kvs[0]?.value).toBeDefined();
  });

  test('with the certificates that the files hold when a connection begins', async () => {
    const log = newLog();
    const mounted = join(folder, 'mounted');
    mkdirSync(mounted);
    const use = ({ certFile, keyFile }: TestCertificate): void => {
      copyFileSync(certFile, join(mounted, 'tls.crt'));
      copyFileSync(keyFile, join(mounted, 'tls.key'));
    };
    use(expired);
    await ready(await start(log, 'a', allFlags));
    const files = { certFile: join(mounted, 'tls.crt'), keyFile: join(mounted, 'tls.key') };
    const follower = await start(log, 'b', [...clientFlags(shown), ...peerFlags(files)]);
    expect(await logged(follower.process, refused)).toMatch(refused);
    use(shown);
    await ready(follower);
    expect(await openClient([follower.url]).kv.put('a', '1')).toBeDefined();
  });

  test('without an authority by --peer-auto-tls', async () => {
    const log = newLog();
    const flags = ['--auto-tls', '--peer-auto-tls'];
    await ready(await start(log, 'a', flags));
    const { url } = await ready(await start(log, 'b', flags));
    const ca = readFileSync(join(folder, 'b', 'fixtures', 'client', 'cert.pem'));
    const client = new EtcdClient({ endpoints: [url], tls: { ca } });
    cleanups.push(() => client.close());
    expect(await client.kv.put('a', '1')).toBeDefined();
  });
});

describe.runIf(hasEtcd())('a server that does not reach the leader logs why', { timeout: 60_000 }, () => {
  test.each([
    ['no certificate', ['--peer-trusted-ca-file', authority.caFile], /PEER_DID_NOT_RETURN_A_CERTIFICATE/],
    ['one of another authority', peerFlags(other.issue('s')), /UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO/],
    ['one that has expired', peerFlags(expired), /CERT_HAS_EXPIRED/],
  ])('it shows %s, and the leader logs the reason', async (_what, flags, reason) => {
    const log = newLog();
    const leader = await ready(await start(log, 'a', allFlags));
    const follower = await start(log, 'b', [...clientFlags(shown), ...flags]);
    expect(await logged(follower.process, refused)).toMatch(refused);
    expect(await logged(leader.process, reason)).toMatch(reason);
    expect(leader.process.err).toContain('TLS handshakes of clients failed');
  });

  test('the leader has a certificate for another host, one that has expired, or one of another authority', async () => {
    for (const [certificate, caFile, reason] of [
      [
        authority.issue('s', { alternativeNames: 'DNS:other' }),
        authority.caFile,
        /does not match certificate's altnames/,
      ],
      [expired, authority.caFile, /certificate has expired/],
      [shown, other.caFile, /self-signed certificate in certificate chain|unable to (verify|get)/],
    ] as const) {
      const log = newLog();
      await ready(await start(log, 'a', [...clientFlags(certificate), ...peerFlags(shown)]));
      const follower = await start(log, 'b', [...clientFlags(shown), ...peerFlags(shown, caFile)]);
      expect(await logged(follower.process, reason)).toMatch(reason);
      await follower.process.end();
    }
  });

  test('a relay with a valid certificate ends TLS, and passes the bytes on by TLS or without', async () => {
    for (const scheme of ['https', 'http']) {
      const log = newLog();
      const url = `${scheme}://127.0.0.1:${await freePort()}`;
      const relay = await startRelay(url);
      const secure = scheme === 'https' ? clientFlags(shown).slice(0, 4) : [];
      const flags = ['--listen-client-urls', url, '--advertise-client-urls', relay, ...secure];
      await ready(await start(log, 'a', flags));
      const follower = await start(log, 'b', allFlags);
      const reason =
        /cannot be reached: between this server and the one at https:\S* something ends TLS, a proxy or an/;
      expect(await logged(follower.process, reason)).toMatch(reason);
      await follower.process.end();
    }
  });
});

test.runIf(hasEtcd())(
  'a client with a valid certificate and without the secret is not linked',
  async () => {
    const { url } = await ready(await start(newLog(), 'a', allFlags));
    // An empty greeting, in gRPC's frame.
    const output = await new Promise<string>((resolve) => {
      const target = `${url}/tenure.peer.v1.Peer/Link`;
      const files = ['--cacert', authority.caFile, '--cert', ada.certFile, '--key', ada.keyFile];
      const how = [
        '-sS',
        '--http2',
        '-i',
        '--max-time',
        '10',
        '-H',
        'content-type: application/grpc',
        '-H',
        'te: trailers',
      ];
      const child = execFile('curl', [...how, ...files, '--data-binary', '@-', target], (_error, out, err) =>
        resolve(out + err),
      );
      child.stdin?.end(Buffer.from([0, 0, 0, 0, 2, 0x0a, 0]));
    });
    expect(output).toContain('a stream between servers begins with a greeting');
  },
  30_000,
);
