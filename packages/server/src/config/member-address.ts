import { ConfigError } from './config-error.ts';
import { maxAdvertiseUrls, parseHttpUrl, type ListenUrl } from './listen-url.ts';

/** What a member may be called: every server keeps it, and shows it to clients. */
export const maxMemberNameChars = 256;
/** A host name has at most 253. */
const maxUrlChars = 300;

/** Whether a member may register these as its addresses. */
export function areMemberUrls(urls: readonly string[]): boolean {
  return urls.length <= maxAdvertiseUrls && urls.every((url) => parseMemberUrl(url) !== undefined);
}

/** The address that a member has registered; undefined when no server could be reached there. */
export function parseMemberUrl(url: string): ListenUrl | undefined {
  if (url.length > maxUrlChars) return undefined;
  try {
    const address = parseHttpUrl(url);
    return address.port === 0 ? undefined : address;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
