import type { AuthData, Command, CommandResponse, Requester } from '@tenure/core';

/**
 * Issues the tokens with which clients name their user, and recognizes them. While authentication is disabled neither
 * method is called.
 */
export interface TokenProvider {
  /**
   * The user of a token, and the auth revision by which its requests are judged. Undefined for a token that is unknown,
   * forged, expired, or older than the user's password or the last time that authentication was enabled. A number of
   * requests a second call this, so a known token is answered without a promise. Rejects as a read does, when this
   * server cannot find out. `metadata`: where the token stands, the same object for calls with the same headers.
   */
  requesterOf(token: string, metadata?: object): Requester | undefined | Promise<Requester | undefined>;
  /**
   * A token for a user whose password was checked by the auth data of `authRevision`. Every server of the cluster
   * accepts it. Resolves with undefined if the auth data has changed since: the password must be checked again. Rejects
   * as a proposal does, or with GrpcStatus.
   */
  issue(user: string, authRevision: number): Promise<string | undefined>;
  /** To be called for each command that is applied after recovery, on every server. */
  applied(command: Command, response: CommandResponse): void;
  stop(): void;
}

/**
 * Whether a token that the user got by the auth data of `authRevision` is still valid: the user is the same, has the
 * same password, and authentication was not disabled since.
 */
export function isStillValid({ enabled, enabledAt, users }: AuthData, { user, authRevision }: Requester): boolean {
  const since = users.get(user)?.since;
  return enabled && since !== undefined && since <= authRevision && enabledAt <= authRevision;
}
