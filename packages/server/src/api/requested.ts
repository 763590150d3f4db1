import type { Command, CommandBody, CoreError } from '@tenure/core';
import type { Call } from '../transport/transport.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { answered, statusNamed, statusOfCoreError } from './status-of.ts';

/** Who asks; undefined while authentication is disabled. */
export type RequestedBy = Pick<Call, 'requester'>;

/** Adds the requester, whose permission apply checks, to a command that nothing else holds. */
export function requested(command: CommandBody, by: RequestedBy['requester']): Command {
  return by === undefined ? command : Object.assign(command, { by });
}

/**
 * The same for a command that servers also propose by themselves, which apply therefore does not refuse for want of a
 * requester: nothing after this refuses it. This server may not know yet that authentication is enabled, and finds out
 * first, however long that takes; the access guard gives up sooner. The leader cannot check it in place of this server:
 * it may not have heard yet of an entry that a follower has acknowledged, and a follower's own alarm looks the same.
 */
export async function requestedOfServers(
  command: CommandBody,
  by: RequestedBy['requester'],
  replica: Pick<ReplicaAccess, 'linearize' | 'state'>,
): Promise<Command> {
  if (by === undefined) {
    await answered(replica.linearize());
    if (replica.state.auth.enabled) throw statusNamed('UserEmpty');
  }
  return by === undefined ? command : { ...command, by };
}

/** Throws the status of a refusal. */
export function throwRefused(refused: CoreError | undefined): void {
  if (refused !== undefined) throw statusOfCoreError(refused);
}
