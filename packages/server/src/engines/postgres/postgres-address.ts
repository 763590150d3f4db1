import { EngineError } from '../engine-error.ts';
import { defaultTiming } from './postgres-timing.ts';
import type { PostgresTiming } from './postgres-timing.ts';

export interface PostgresHost {
  /** Host and port, for messages to operators. */
  readonly name: string;
  /** A URL of this host alone, with the password: never printed. */
  readonly url: string;
}

/**
 * The location of the log, and its connect timeout: one database, on any of several hosts, one of which is the primary.
 */
export interface PostgresAddress {
  readonly hosts: readonly PostgresHost[];
  readonly database: string;
  readonly timing: PostgresTiming;
}

const shape = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/;
/** The values that ask for the primary, which is the only server that can hold a log. */
const primaryAttributes = new Set(['read-write', 'primary', 'any']);
const defaultPort = '5432';
/** The options that the driver uses or may ignore; any other name may be a typo, such as one that disables TLS. */
const knownOptions = new Set([
  ...['host', 'port', 'user', 'password', 'application_name', 'fallback_application_name', 'options'],
  ...['ssl', 'sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation', 'uselibpqcompat'],
  ...['client_encoding', 'connect_timeout', 'keepalives', 'channel_binding', 'gssencmode'],
]);
const sslModes = new Set(['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']);

/**
 * Parses `postgres://user:password@host:port,host:port/database?options`. Throws EngineError `unusable` for any other
 * text, with a message that does not contain the password.
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
      // A socket's folder cannot be written as a host name.
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
