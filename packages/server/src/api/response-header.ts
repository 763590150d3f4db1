import type { ResponseHeader } from '@tenure/codec';
import type { Identity } from './identity.ts';

/** The header of a response, for the messages that are encoded by the hand-written codec. */
export function responseHeader(identity: Identity, revision: number, raftTerm: number): ResponseHeader {
  return { prefix: identity.headerPrefix, revision, raftTerm };
}

/** The header of a response, for the messages that are encoded by the generated codec. */
export function headerMessage(
  identity: Identity,
  revision: number,
  raftTerm: number,
): { clusterId: bigint; memberId: bigint; revision: bigint; raftTerm: bigint } {
  const { clusterId, memberId } = identity;
  return { clusterId, memberId, revision: BigInt(revision), raftTerm: BigInt(raftTerm) };
}
