import { ConfigError } from './config-error.ts';
import { maxAdvertiseUrls, parseUrl, type ListenUrl } from './listen-url.ts';

/** The maximum length of a member's name, which every server stores and shows to clients. */
export const maxMemberNameChars = 256;
/** The maximum length of a host name is 253. */
const maxUrlChars = 300;

/** Whether a member may register these as its addresses. */
export function areMemberUrls(urls: readonly string[]): boolean {
  return urls.length <= maxAdvertiseUrls && urls.every((url) => parseMemberUrl(url) !== undefined);
}

/** The address that a member has registered; undefined for an invalid one. */
export function parseMemberUrl(url: string): ListenUrl | undefined {
  if (url.length > maxUrlChars) return undefined;
  try {
    const address = parseUrl(url);
    return address.port === 0 ? undefined : address;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
