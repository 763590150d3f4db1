import { readFileSync, statSync } from 'node:fs';
import { EngineError } from './engine-error.ts';
import type { EngineState } from './engine-health.ts';
import { parseEtcdAddress } from './etcd/etcd-address.ts';
import type { EtcdCredentials, EtcdTls } from './etcd/etcd-log-client.ts';
import type { SharedLogEngine } from './log-engine.ts';

export interface SharedEngineOptions {
  /** postgres://..., or etcd://user:password@host:port,host:port/prefix. */
  readonly url: string;
  /** On PostgreSQL: the schema that holds the log. */
  readonly schema: string;
  /** On etcd: it serves only this log, so its old revisions may be compacted. */
  readonly dedicated: boolean;
  /** On etcd: paths of PEM files, '' for none. Uses TLS if any is given. */
  readonly tls?: { readonly cacert: string; readonly cert: string; readonly key: string };
  /** On etcd: the user of this server, '' when not given. Takes precedence over the user in the address. */
  readonly login?: EngineLogin;
  /** Refuse a location without a log. False by default. */
  readonly mustExist?: boolean;
  readonly onNotice: (notice: string) => void;
  /** Called when the log's storage can no longer be reached, and when it can again. */
  readonly onState?: (state: EngineState) => void;
}

export interface EngineLogin {
  readonly user: string;
  readonly password: string;
  /** A file whose first line is the password; takes precedence over `password`. */
  readonly passwordFile: string;
}

/**
 * Opens the log at an address, on an engine that several servers share. Rejects with EngineError. An engine's module is
 * loaded when it is opened: its client is most of the code that a server would otherwise load at its start.
 */
export async function openSharedEngine(options: SharedEngineOptions): Promise<SharedLogEngine> {
  const { url, schema, dedicated, mustExist = false, onNotice, onState = () => undefined } = options;
  const tls = readTls(options.tls);
  if (!url.startsWith('etcd://')) {
    if (tls !== undefined) throw unusable('--engine-cacert, --engine-cert and --engine-key are for etcd; ' + sslHelp);
    const { openPostgresEngine } = await import('./postgres/postgres-engine.ts');
    return openPostgresEngine({
      url,
      schema,
      mustExist,
      onNotice,
      onState,
    });
  }
  const { endpoints, prefix, credentials: named } = parseEtcdAddress(url);
  const credentials = credentialsOf(options.login) ?? named;
  const { openEtcdEngine } = await import('./etcd/etcd-engine.ts');
  return openEtcdEngine({
    endpoints,
    prefix,
    dedicated,
    mustExist,
    onNotice,
    onState,
    ...(credentials === undefined ? {} : { credentials }),
    ...(tls === undefined ? {} : { tls }),
  });
}

const sslHelp = 'on PostgreSQL put sslmode, sslrootcert, sslcert and sslkey in the address';

function readTls(files: SharedEngineOptions['tls']): EtcdTls | undefined {
  if (files === undefined) return undefined;
  const { cacert, cert, key } = files;
  if (cacert === '' && cert === '' && key === '') return undefined;
  if ((cert === '') !== (key === '')) throw unusable('--engine-cert and --engine-key go together: give both');
  return {
    ...(cacert === '' ? {} : { ca: readPem('--engine-cacert', cacert) }),
    ...(cert === '' ? {} : { cert: readPem('--engine-cert', cert), key: readPem('--engine-key', key) }),
  };
}

function credentialsOf(login: EngineLogin | undefined): EtcdCredentials | undefined {
  if (login === undefined) return undefined;
  const { user, passwordFile } = login;
  const [fromFile] =
    passwordFile === '' ? [] : readNamed('--engine-password-file', passwordFile).toString().split(/\r?\n/);
  const password = fromFile ?? login.password;
  if (user === '' && password === '') return undefined;
  if (user === '' || password === '') {
    throw unusable(
      'a user of etcd has a name and a password: give --engine-user, and --engine-password-file or the environment ' +
        'variable TENURE_ENGINE_PASSWORD',
    );
  }
  return { user, password };
}

function readNamed(flag: string, path: string): Buffer {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) throw unusable(`${flag}: ${path} is a folder`);
  try {
    return readFileSync(path);
  } catch (error) {
    throw unusable(`${flag}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readPem(flag: string, path: string): Buffer {
  const bytes = readNamed(flag, path);
  if (!bytes.includes('-----BEGIN ')) throw unusable(`${flag}: ${path} is no PEM file`);
  return bytes;
}

function unusable(message: string): EngineError {
  return new EngineError('unusable', message);
}
