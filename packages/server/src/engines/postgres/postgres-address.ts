import { EngineError } from '../engine-error.ts';
import { defaultTiming } from './postgres-timing.ts';
import type { PostgresTiming } from './postgres-timing.ts';

export interface PostgresHost {
  /** Host and port, as an operator knows them. */
  readonly name: string;
  /** An URL of this host alone, with the password: never printed. */
  readonly url: string;
}

/** Where the log is kept, and how long it is waited for: one database, on any of several hosts, one of them primary. */
export interface PostgresAddress {
  readonly hosts: readonly PostgresHost[];
  readonly database: string;
  readonly timing: PostgresTiming;
}

const shape = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/;
/** What asks for the primary, which is the only server that a log can be kept on. */
const primaryAttributes = new Set(['read-write', 'primary', 'any']);
const defaultPort = '5432';
/** What the driver heeds, and what it can do without; any other name may be a slip, such as one that leaves TLS off. */
const knownOptions = new Set([
  ...['host', 'port', 'user', 'password', 'application_name', 'fallback_application_name', 'options'],
  ...['ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation', 'uselibpqcompat'],
  ...['client_encoding', 'connect_timeout', 'keepalives', 'channel_binding', 'gssencmode'],
]);
const sslModes = new Set(['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']);

/**
 * Reads `postgres://user:password@host:port,host:port/database?options`. Throws EngineError `unusable` when it is none,
 * with a message that does not hold the password.
 */
export function parsePostgresAddress(url: string, timing = defaultTiming): PostgresAddress {
  const parts = shape.exec(url);
  if (parts === null) throw unusable('it is not of the form postgres://user@host:port,host:port/database');
  const [, credentials, hostList = '', path = '', query = ''] = parts;
  const options = new URLSearchParams(query);
  const attributes = options.get('target_session_attrs') ?? 'read-write';
  if (!primaryAttributes.has(attributes)) {
    throw unusable(`target_session_attrs=${attributes} asks for a standby; the log is kept on the primary: read-write`);
  }
  options.delete('target_session_attrs');
  checkOptions(options);
  const hosts = hostsOf(hostList, options);
  for (const name of ['host', 'port']) options.delete(name);
  const user = userOf(credentials);
  return {
    timing,
    database: decoded(path) || user || 'the default one',
    hosts: hosts.map(({ host, port }) => {
      const at = new URLSearchParams(options);
      // A socket's folder cannot stand where a host's name does.
      if (host.startsWith('/')) at.set('host', host);
      const authority = host.startsWith('/') ? '' : host.includes(':') ? `[${host}]` : host;
      const before = credentials === undefined ? '' : `${credentials}@`;
      const behind = at.size === 0 ? '' : `?${at.toString()}`;
      const place = host.startsWith('/') ? `${before}localhost:${port}` : `${before}${authority}:${port}`;
      return { name: `${host}:${port}`, url: `postgres://${place}/${path}${behind}` };
    }),
  };
}

function checkOptions(options: URLSearchParams): void {
  for (const name of options.keys()) {
    if (!knownOptions.has(name)) throw unusable(`it has no option '${name}'; for TLS there are ssl and sslmode`);
  }
  const mode = options.get('sslmode');
  if (mode !== null && !sslModes.has(mode)) {
    throw unusable(`sslmode='${mode}' is none of ${[...sslModes].join(', ')}`);
  }
}

function hostsOf(list: string, options: URLSearchParams): { host: string; port: string }[] {
  const ports = (options.get('port') ?? '').split(',');
  const names = options.get('host')?.split(',') ?? list.split(',');
  return names.map((name, at) => {
    const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]*))(?::(\d*))?$/.exec(name);
    if (match === null) throw unusable(`'${name}' is no host or host:port`);
    const host = decoded(match[1] ?? match[2] ?? '') || 'localhost';
    const port = match[3] || ports[at] || ports[0] || defaultPort;
    if (!/^\d+$/.test(port) || Number(port) < 1 || Number(port) > 65_535) throw unusable(`'${port}' is no port`);
    return { host, port };
  });
}

function userOf(credentials: string | undefined): string {
  return decoded((credentials ?? '').split(':')[0] ?? '');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unusable('it holds a % that is not followed by two hex digits');
  }
}

function unusable(why: string): EngineError {
  return new EngineError('unusable', `the address of the PostgreSQL engine cannot be used: ${why}`);
}
