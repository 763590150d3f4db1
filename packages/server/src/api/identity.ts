import type { ResponseHeaderPrefix } from '@tenure/codec';

/** Who answers: fixed once the server has registered itself. */
export interface Identity {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  /** Both of them, as the header of every response begins. */
  readonly headerPrefix: ResponseHeaderPrefix;
}
