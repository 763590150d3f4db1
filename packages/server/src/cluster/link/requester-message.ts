import type { MessageInitShape } from '@bufbuild/protobuf';
import { anonymous, invalidToken, type Requester } from '@tenure/core';
import type { peerpb } from '@tenure/protocol';

export type RequesterMessage = MessageInitShape<typeof peerpb.RequesterSchema>;

/** The field of a message that names the requester; none while authentication is disabled. */
export function requestedBy(by: Requester | undefined): { readonly requester?: RequesterMessage } {
  return by === undefined ? {} : { requester: { user: by.user, authRevision: BigInt(by.authRevision) } };
}

/** Undefined without a message. */
export function requesterIn(message: peerpb.Requester | undefined): Requester | undefined {
  if (message === undefined) return undefined;
  const { user, authRevision } = message;
  if (authRevision > 0n) return { user, authRevision: Number(authRevision) };
  return authRevision === 0n ? anonymous : invalidToken;
}

/** About the bytes of its message. */
export function requesterBytes(by: Pick<RequesterMessage, 'user'> | undefined): number {
  return by?.user?.length ?? 0;
}
