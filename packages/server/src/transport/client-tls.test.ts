import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import * as grpc from '@grpc/grpc-js';
import { TestAuthority, type TestCertificate, type TestServer, echo, startTestServer } from '@tenure/test-support';
import type { CallerConnection, TransportLimits } from '@tenure/grpc-server';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { listenerTls } from './client-tls.ts';
import { clientOptions, createTestTls, secureConnection } from './testing/test-tls.ts';

const tls = createTestTls();
const { authority } = tls;
const ada = authority.issue('ada', { usage: 'clientAuth', alternativeNames: 'DNS:ada.example.com' });
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(() => tls.close());

interface Options extends NonNullable<Parameters<typeof tls.open>[0]> {
  readonly namesCaller?: boolean;
  readonly limits?: Partial<TransportLimits>;
}

interface SecureServer extends TestServer {
  /** The connections of the calls, in their order. */
  readonly callers: CallerConnection[];
}

async function serve({ namesCaller = true, limits = {}, ...options }: Options = {}): Promise<SecureServer> {
  const callers: CallerConnection[] = [];
  const handle = (request: Buffer, call: { readonly connection: CallerConnection }): Buffer => {
    callers.push(call.connection);
    return echo(request);
  };
  const server = await startTestServer(
    { '/t.T/Echo': { kind: 'unary', handle } },
    { sweepIntervalMs: 50, ...limits },
    undefined,
    undefined,
    listenerTls({ credentials: await tls.open(options), namesCaller }),
  );
  cleanups.push(() => server.transport.close({ graceMs: 100 }));
  return { ...server, callers };
}

const withClients = { trustedCaFile: authority.caFile };

/** One call by a gRPC client: its reply, or the code of its failure. */
function callOnce({ port }: TestServer, client?: TestCertificate): Promise<string> {
  const read = (file: string | undefined): Buffer | null => (file === undefined ? null : readFileSync(file));
  const credentials = grpc.credentials.createSsl(
    readFileSync(authority.caFile),
    read(client?.keyFile),
    read(client?.certFile),
  );
  const caller = new grpc.Client(`127.0.0.1:${port}`, credentials);
  cleanups.push(() => caller.close());
  const raw = (value: Buffer): Buffer => value;
  return new Promise((resolve) => {
    const deadline = Date.now() + 5000;
    caller.makeUnaryRequest('/t.T/Echo', raw, raw, Buffer.from('hello'), { deadline }, (error, reply) =>
      resolve(error === null ? String(reply) : `code ${error.code}`),
    );
  });
}

/** Sends a request of HTTP/1 and resolves with all that comes back. */
async function http1(socket: TLSSocket): Promise<string> {
  socket.write('GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(socket, 'close');
  return text;
}

/** Whether a client with these options is served. */
async function isServed({ port }: TestServer, options: ConnectionOptions): Promise<boolean> {
  try {
    const socket = await secureConnection(port, options);
    socket.on('error', () => {});
    return (await http1(socket)).startsWith('HTTP/1.1 200');
  } catch {
    return false;
  }
}

describe('one port with TLS', () => {
  test('serves gRPC and HTTP/1.1, and knows the address of its caller', async () => {
    const server = await serve();
    expect(await callOnce(server)).toBe('hello');
    expect(server.callers).toMatchObject([{ remoteAddress: '127.0.0.1', commonName: undefined }]);
    expect(await isServed(server, { ...clientOptions(tls), ALPNProtocols: ['http/1.1'] })).toBe(true);
    expect(await isServed(server, clientOptions(tls))).toBe(true);
  });

  test('chooses HTTP/2 by ALPN, and refuses a client that knows neither protocol or speaks the other', async () => {
    const server = await serve();
    const both = await secureConnection(server.port, { ...clientOptions(tls), ALPNProtocols: ['http/1.1', 'h2'] });
    expect(both.alpnProtocol).toBe('h2');
    expect(await http1(both)).toBe('');
    const unknown = secureConnection(server.port, { ...clientOptions(tls), ALPNProtocols: ['spdy/3'] });
    await expect(unknown).rejects.toThrow('no application protocol');
  });

  test('finds HTTP/2 by its first bytes without ALPN', async () => {
    const { port } = await serve();
    const socket = await secureConnection(port, clientOptions(tls));
    expect(socket.alpnProtocol).toBe(false);
    socket.write(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1'));
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    // A SETTINGS frame.
    expect(chunk[3]).toBe(4);
    socket.destroy();
  });

  test('keeps the order of records that arrive together', async () => {
    const { port } = await serve();
    const below = connectPlain(port, '127.0.0.1');
    const held: Buffer[] = [];
    let isHolding = false;
    const pipe = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        if (isHolding) held.push(chunk);
        else below.write(chunk);
        done();
      },
    });
    below.on('data', (chunk) => pipe.push(chunk)).on('close', () => pipe.destroy());
    const socket = connectTls({ socket: pipe, ...clientOptions(tls), ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    isHolding = true;
    const write = (bytes: string): Promise<void> =>
      new Promise((resolve) => socket.write(Buffer.from(bytes, 'latin1'), () => resolve()));
    await write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await write('\0\0\0\x04\0\0\0\0\0');
    // A PING, whose answer shows that the server has understood all of it.
    await write('\0\0\x08\x06\0\0\0\0\x0012345678');
    expect(held.length).toBeGreaterThanOrEqual(3);
    let answered = '';
    socket.on('data', (chunk: Buffer) => (answered += chunk.toString('latin1')));
    below.write(Buffer.concat(held));
    await expect.poll(() => answered).toContain('12345678');
    below.destroy();
  });

  test('resumes no session, so that each connection shows its certificate again', async () => {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { port } = await serve(withClients);
      const options = { ...clientOptions(tls, ada), maxVersion };
      const first = await secureConnection(port, options);
      const sessions: (Uint8Array | undefined)[] = [first.getSession()];
      first.on('session', (later: Buffer) => sessions.push(later));
      await http1(first);
      const session = Buffer.concat(sessions.slice(-1).map((each) => each ?? new Uint8Array()));
      const second = await secureConnection(port, { ...options, session });
      expect([maxVersion, second.isSessionReused()]).toEqual([maxVersion, false]);
      second.destroy();
    }
  });

  test('does not renegotiate', async () => {
    const { port } = await serve();
    const socket = await secureConnection(port, { ...clientOptions(tls), maxVersion: 'TLSv1.2' });
    const outcome = new Promise<Error | null>((resolve) => {
      socket.on('error', resolve);
      socket.renegotiate({}, resolve);
    });
    expect(await outcome).toMatchObject({ message: expect.stringContaining('renegotiation') });
    socket.destroy();
  });

  test.each([
    ['TLSv1.2', 'TLSv1.2', ['TLSv1.2'], ['TLSv1.1', 'TLSv1.3']],
    ['TLSv1.3', 'TLSv1.3', ['TLSv1.3'], ['TLSv1.2']],
    ['TLSv1.2', 'TLSv1.3', ['TLSv1.2', 'TLSv1.3'], ['TLSv1.1']],
  ] as const)('from %s to %s serves %j and refuses %j', async (minVersion, maxVersion, served, refused) => {
    const server = await serve({ minVersion, maxVersion });
    const only = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<boolean> =>
      // At OpenSSL's level 0 a client may still ask for the old versions.
      isServed(server, {
        ...clientOptions(tls),
        minVersion: version,
        maxVersion: version,
        ...(version === 'TLSv1.1' ? { ciphers: 'DEFAULT@SECLEVEL=0' } : {}),
      });
    for (const version of served) expect([version, await only(version)]).toEqual([version, true]);
    for (const version of refused) expect([version, await only(version)]).toEqual([version, false]);
  });
});

describe('the certificates of clients', () => {
  const otherAuthority = new TestAuthority(tls.folder, 'other-authority');
  const revoked = authority.issue('revoked');
  authority.revoke(revoked);
  const crlFile = authority.writeRevocationList('list.crl');
  const crlInDer = authority.writeRevocationList('list.der', { form: 'DER' });
  const outdatedCrl = authority.writeRevocationList('outdated.crl', { isOutdated: true });
  const expired = authority.issue('expired', { isExpired: true });
  const forServers = authority.issue('server too', { usage: 'serverAuth' });
  const stranger = otherAuthority.issue('ada');
  const namesake = authority.issue('');

  describe.each(['TLSv1.2', 'TLSv1.3'] as const)('with %s', (version) => {
    const limits = { minVersion: version, maxVersion: version };

    test.each([
      ['none', undefined, 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE'],
      ['one of another authority with the same name', stranger, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
      ['an expired one', expired, 'CERT_HAS_EXPIRED'],
      ['a revoked one', revoked, 'CERT_REVOKED'],
      ['one for servers', forServers, 'INVALID_PURPOSE'],
      ['a valid one', ada, ''],
    ])('%s', async (_what, client, fault) => {
      const served = fault === '';
      for (const list of [crlFile, crlInDer]) {
        const server = await serve({ ...withClients, crlFile: list, ...limits });
        expect(await isServed(server, clientOptions(tls, client))).toBe(served);
        expect(await callOnce(server, client)).toBe(served ? 'hello' : 'code 14');
        expect(server.callers).toHaveLength(served ? 1 : 0);
        if (!served) await expect.poll(() => server.faults.join()).toContain(`127.0.0.1: ${fault}`);
      }
    });

    test('an outdated list of revocations refuses every client', async () => {
      const server = await serve({ ...withClients, crlFile: outdatedCrl, ...limits });
      expect(await isServed(server, clientOptions(tls, ada))).toBe(false);
    });

    test('allowed host names are those of the alternative names, never of the subject', async () => {
      const server = await serve({
        ...withClients,
        allowedHostnames: ['bob.example.com', 'ada.example.com'],
        ...limits,
      });
      expect(await isServed(server, clientOptions(tls, ada))).toBe(true);
      const named = authority.issue('ada.example.com', { alternativeNames: '' });
      expect(await isServed(server, clientOptions(tls, named))).toBe(false);
      const byAddress = await serve({ ...withClients, allowedHostnames: ['127.0.0.1'], ...limits });
      expect(await isServed(byAddress, clientOptions(tls, namesake))).toBe(true);
      expect(await isServed(byAddress, clientOptions(tls, ada))).toBe(false);
    });

    test('allowed common names are that of the subject alone, as a whole', async () => {
      const server = await serve({ ...withClients, allowedCommonNames: ['eve', 'ada'], ...limits });
      expect(await isServed(server, clientOptions(tls, ada))).toBe(true);
      const others = [
        authority.issue('Ada'),
        authority.issue('ada.example.com'),
        authority.issue('bob', { alternativeNames: 'DNS:ada' }),
        authority.issue('bob/O=ada'),
        authority.issue('ada/CN=bob'),
        authority.issue('bob/CN=ada'),
        namesake,
        authority.issue(''),
      ];
      for (const [at, other] of others.entries()) {
        expect(await isServed(server, clientOptions(tls, other)), `certificate ${at}`).toBe(false);
      }
      await expect.poll(() => server.faults.join()).toContain('the common name of the certificate is not allowed');
    });
  });

  test('name the caller where services are told so, and not elsewhere', async () => {
    const named = await serve(withClients);
    await callOnce(named, ada);
    await callOnce(named, namesake);
    expect(named.callers.map(({ commonName }) => commonName)).toEqual(['ada', undefined]);
    const nameless = await serve({ ...withClients, namesCaller: false });
    await callOnce(nameless, ada);
    expect(nameless.callers.map(({ commonName }) => commonName)).toEqual([undefined]);
    // Not asked for, a certificate says nothing: it was not verified.
    const open = await serve();
    await callOnce(open, stranger);
    expect(open.callers.map(({ commonName }) => commonName)).toEqual([undefined]);
  });
});

describe('a stranger', () => {
  const limits = { handshakeTimeoutMs: 400, prefaceTimeoutMs: 400 };

  /** Sends bytes without TLS and resolves with what comes back before the server closes the connection. */
  async function send({ port }: TestServer, bytes: Buffer): Promise<string> {
    const socket = connectPlain(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.write(bytes);
    await once(socket, 'close');
    return text;
  }

  test.each([
    ['speaks HTTP without TLS', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'does not speak TLS'],
    ['speaks SSL 2', Buffer.from([0x80, 0x2e, 1, 3, 1]), 'does not speak TLS'],
    ['announces a long ClientHello', Buffer.from([22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]), 'too long'],
    ['splits its ClientHello into records', Buffer.from([22, 3, 1, 0, 5, 1, 0, 2, 0, 3]), 'too long'],
    ['sends nothing', Buffer.alloc(0), 'took too long'],
    ['stops in its ClientHello', Buffer.from([22, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3]), 'took too long'],
    ['sends a broken ClientHello', Buffer.from([22, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3]), ''],
  ])('that %s is disconnected, and others are served', async (_what, bytes, reason) => {
    const server = await serve({ limits });
    const beganMs = performance.now();
    // A broken ClientHello is answered with an alert.
    expect((await send(server, bytes)).length).toBeLessThan(8);
    expect(performance.now() - beganMs).toBeLessThan(3000);
    expect(await callOnce(server)).toBe('hello');
    await expect.poll(() => server.faults.join()).toContain(reason);
    await expect.poll(() => server.transport.connections).toBe(1);
  });

  test('that finishes its handshake and sends nothing is disconnected', async () => {
    const server = await serve({ limits });
    const socket = await secureConnection(server.port, clientOptions(tls));
    await once(socket, 'close');
    await expect.poll(() => server.transport.connections).toBe(0);
  });

  test('with TLS at an address without it is answered in HTTP/1.1', async () => {
    const { transport, port } = await startTestServer({});
    cleanups.push(() => transport.close({ graceMs: 100 }));
    await expect(secureConnection(port, clientOptions(tls))).rejects.toThrow('wrong version number');
  });

  test('counts among the connections before its handshake', async () => {
    const server = await serve({ limits: { maxConnections: 8, handshakeTimeoutMs: 60_000 } });
    const silent = Array.from({ length: 8 }, () => connectPlain(server.port, '127.0.0.1'));
    cleanups.push(() => silent.forEach((socket) => socket.destroy()));
    await expect.poll(() => server.transport.connections).toBe(8);
    expect(await isServed(server, clientOptions(tls))).toBe(false);
    for (const socket of silent) socket.destroy();
    await expect.poll(() => server.transport.connections).toBe(0);
    expect(await isServed(server, clientOptions(tls))).toBe(true);
  });
});

test('a server that stops ends its connections in the handshake, before a request, and after it', async () => {
  const { transport, port } = await serve();
  const plain = connectPlain(port, '127.0.0.1').on('error', () => {});
  const silent = await secureConnection(port, clientOptions(tls));
  const http2 = await secureConnection(port, { ...clientOptions(tls), ALPNProtocols: ['h2'] });
  http2.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
  await once(http2, 'data');
  expect(transport.connections).toBe(3);
  const ends = [plain, silent, http2].map((socket) => once(socket.on('error', () => {}).resume(), 'close'));
  await transport.close({ graceMs: 100 });
  await Promise.all(ends);
  expect(transport.connections).toBe(0);
});
