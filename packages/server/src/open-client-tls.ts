import { hostname } from 'node:os';
import { join } from 'node:path';
import type { ListenUrl } from './config/listen-url.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { Logger } from './logging/logger.ts';
import type { Random } from './random/random.ts';
import type { Clock } from './time/clock.ts';
import { selfSignedFiles } from './tls/self-signed-files.ts';
import { TlsCredentials } from './tls/tls-credentials.ts';
import type { ClientTls } from './transport/client-tls.ts';

export interface ClientTlsParts {
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Reads the files of TLS, or makes a certificate where none is given. Undefined when no address uses TLS. Rejects with
 * a message for the operator.
 */
export async function openClientTls(config: ServerConfig, parts: ClientTlsParts): Promise<ClientTls | undefined> {
  const { clientTls, dataDir } = config;
  if (clientTls === undefined) return undefined;
  const { selfSigned, namesCaller, options } = clientTls;
  const made =
    selfSigned &&
    (await selfSignedFiles({
      folder: join(dataDir, 'fixtures', 'client'),
      hosts: hostsOf(config.listenClientUrls, config.advertiseClientUrls),
      validityYears: selfSigned.validityYears,
      nowMs: parts.clock.wallMs(),
      random: parts.random,
    }));
  const files = { ...options.files, ...made };
  return { credentials: await TlsCredentials.open({ ...options, files }, parts), namesCaller };
}

/** All names that may be dialed: a wildcard address has none, so those of this machine are always among them. */
export function hostsOf(listenUrls: readonly ListenUrl[], advertiseUrls: readonly string[]): readonly string[] {
  const advertised = advertiseUrls.map((url) => new URL(url).hostname.replaceAll(/[[\]]/g, ''));
  const listened = listenUrls.map(({ host }) => host).filter((host) => host !== '0.0.0.0' && host !== '::');
  return [...new Set([...listened, ...advertised, 'localhost', '127.0.0.1', '::1', hostname()])];
}
