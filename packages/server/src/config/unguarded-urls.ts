import { formatUrl, isLoopback } from './listen-url.ts';
import type { ServerConfig } from './server-config.ts';

/** The addresses that other machines can reach, and at which no client needs a certificate. */
export function unguardedUrls({ clientTls, listenClientUrls }: ServerConfig): readonly string[] {
  const needsCertificate = (clientTls?.options.files.trustedCaFile ?? '') !== '';
  return listenClientUrls
    .filter(({ scheme, host }) => !isLoopback(host) && (scheme === 'http' || !needsCertificate))
    .map(formatUrl);
}
