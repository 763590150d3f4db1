import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { TestAuthority, type TestCertificate } from '@tenure/test-support';
import { systemClock } from '../../time/system-clock.ts';
import { defaultCiphers } from '../../tls/cipher-suites.ts';
import { TlsCredentials } from '../../tls/tls-credentials.ts';
import type { TlsOptions } from '../../tls/tls-options.ts';

export interface TestTls {
  readonly folder: string;
  readonly authority: TestAuthority;
  readonly server: TestCertificate;
  /** What the server has logged about its files. */
  readonly logged: string[];
  options(changed?: ChangedOptions): TlsOptions;
  open(changed?: ChangedOptions): Promise<TlsCredentials>;
  close(): void;
}

type ChangedOptions = Partial<Omit<TlsOptions, 'files'>> & Partial<TlsOptions['files']>;

/** An authority with a certificate for a server at 127.0.0.1, in a temporary folder. */
export function createTestTls(): TestTls {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-tls-'));
  const authority = new TestAuthority(folder);
  const server = authority.issue('server', { usage: 'serverAuth' });
  const opened: TlsCredentials[] = [];
  const logged: string[] = [];
  const note = (_fields: object, text: string): void => void logged.push(text);
  const options = (changed: ChangedOptions = {}): TlsOptions => {
    const { certFile = server.certFile, keyFile = server.keyFile, trustedCaFile = '', crlFile = '' } = changed;
    return {
      allowedHostnames: [],
      allowedCommonNames: [],
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.3',
      ciphers: defaultCiphers,
      ...changed,
      files: { certFile, keyFile, trustedCaFile, crlFile },
    };
  };
  return {
    folder,
    authority,
    server,
    logged,
    options,
    open: async (changed) => {
      const credentials = await TlsCredentials.open(options(changed), {
        clock: systemClock,
        log: { info: note, warn: note },
      });
      opened.push(credentials);
      return credentials;
    },
    close: () => {
      for (const credentials of opened) credentials.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What a client of this server needs; with its certificate, if it has one. */
export function clientOptions({ authority }: TestTls, client?: TestCertificate): ConnectionOptions {
  const own = client === undefined ? {} : { cert: readFileSync(client.certFile), key: readFileSync(client.keyFile) };
  return { ca: readFileSync(authority.caFile), ...own };
}

/** Connects and waits for the end of the client's part of the handshake. */
export function secureConnection(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ...options }, () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the server has closed the connection')));
  });
}
