import type { ResponseHeader } from '@tenure/codec';
import type { Identity } from './identity.ts';

/** The header of a response, for the messages that are encoded by the straight-line codecs. */
export function responseHeader(identity: Identity, revision: number, raftTerm: number): ResponseHeader {
  return { prefix: identity.headerPrefix, revision, raftTerm };
}
