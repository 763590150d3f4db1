import type { ResponseHeaderPrefix } from '@tenure/codec';

/** The identity of this server: fixed once the server has registered itself. */
export interface Identity {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  /** Both of them, as the first fields of every response header. */
  readonly headerPrefix: ResponseHeaderPrefix;
}
