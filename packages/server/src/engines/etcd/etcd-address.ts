import { EngineError } from '../engine-error.ts';
import type { EtcdCredentials } from './etcd-log-client.ts';

/** The location of a log: an etcd cluster, and the prefix of its keys. */
export interface EtcdAddress {
  /** host:port of each member. */
  readonly endpoints: readonly string[];
  /** `/tenure` when the URL names none. */
  readonly prefix: string;
  readonly credentials: EtcdCredentials | undefined;
}

const shape = /^etcd:\/\/(?:([^@/]*)@)?([^/?#]+)(\/[^?#]*)?$/;
const endpointShape = /^(\[[0-9a-fA-F:.%]+\]|[^:[\]]+)(?::(\d+))?$/;
const defaultPort = 2379;
const defaultPrefix = '/tenure';

/**
 * Parses `etcd://user:password@host:port,host:port/prefix`. Throws EngineError `unusable` for any other text, with a
 * message that does not contain the password.
 */
export function parseEtcdAddress(url: string): EtcdAddress {
  const parts = shape.exec(url);
  if (parts === null) throw unusable('it is not of the form etcd://host:port,host:port/prefix');
  const [, credentials, hosts = '', path = ''] = parts;
  const prefix = decoded(path).replace(/\/+$/, '');
  return {
    endpoints: hosts.split(',').map(endpointOf),
    prefix: prefix === '' ? defaultPrefix : prefix,
    credentials: credentials === undefined ? undefined : credentialsOf(credentials),
  };
}

function endpointOf(text: string): string {
  const [, host, port = `${defaultPort}`] = endpointShape.exec(text) ?? [];
  if (host === undefined) throw unusable(`'${text}' is no host:port`);
  if (Number(port) < 1 || Number(port) > 65_535) throw unusable(`'${port}' is no port`);
  return `${host}:${port}`;
}

function credentialsOf(text: string): EtcdCredentials {
  const colon = text.indexOf(':');
  if (colon < 1) throw unusable('before the @ it needs user:password');
  return { user: decoded(text.slice(0, colon)), password: decoded(text.slice(colon + 1)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unusable('it holds a % that is not followed by two hex digits of a character');
  }
}

function unusable(why: string): EngineError {
  return new EngineError('unusable', `the address of the etcd engine cannot be used: ${why}`);
}
