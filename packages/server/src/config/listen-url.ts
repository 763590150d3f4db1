import { isIP } from 'node:net';
import { ConfigError } from './config-error.ts';

/** An address to listen on. */
export interface ListenUrl {
  /** https: with TLS. */
  readonly scheme: 'http' | 'https';
  /** An IP address without brackets, or 'localhost'. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** More addresses than this are an error in a script. */
const maxListenUrls = 16;
export const maxAdvertiseUrls = 32;

/** One or several comma-separated `http://IP:PORT` or `https://IP:PORT`. Throws ConfigError with the reason. */
export function parseListenUrls(text: string): readonly ListenUrl[] {
  const urls = text.split(',').map(parseListenUrl);
  if (urls.length > maxListenUrls) throw new ConfigError(`must be at most ${maxListenUrls} addresses`);
  return urls;
}

function parseListenUrl(text: string): ListenUrl {
  const url = parseUrl(text.trim());
  const { host } = url;
  if (host !== 'localhost' && isIP(host) === 0) {
    throw new ConfigError(`must name an IP address or localhost to listen on, not ${JSON.stringify(host)}`);
  }
  return url;
}

/**
 * Comma-separated URLs at which clients reach the server; host names are allowed. Throws ConfigError with the reason.
 */
export function parseAdvertiseUrls(text: string): readonly string[] {
  if (text === '') return [];
  const parts = text.split(',');
  if (parts.length > maxAdvertiseUrls) throw new ConfigError(`must be at most ${maxAdvertiseUrls} addresses`);
  return parts.map((part) => {
    const url = parseUrl(part.trim());
    if (url.port === 0) throw new ConfigError('must name the port that clients use, not 0');
    return formatUrl(url);
  });
}

export function formatUrl({ scheme, host, port }: ListenUrl): string {
  return `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** True when only programs on this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

// WHATWG's URL would silently drop ':80' and rewrite odd hosts, so the few allowed forms are matched here.
const webUrl = /^(https?):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})\/?$/;

/** Throws ConfigError with the reason. */
export function parseUrl(text: string): ListenUrl {
  if (/^unixs?:/i.test(text))
    throw new ConfigError('names a unix socket, which is not supported: use http://127.0.0.1:PORT');
  const match = webUrl.exec(text);
  if (match === null) throw new ConfigError('must look like http://IP:PORT or https://IP:PORT');
  const port = Number(match[4]);
  if (port > 65_535) throw new ConfigError('must have a port of at most 65535');
  const ipv6 = match[2];
  if (ipv6 !== undefined && isIP(ipv6) !== 6) throw new ConfigError('must have an IPv6 address between the brackets');
  const scheme = match[1] === 'https' ? 'https' : 'http';
  return { scheme, host: (ipv6 ?? match[3] ?? '').toLowerCase(), port };
}
