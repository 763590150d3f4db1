import { type Command, type CommandBody, type CoreError, identityRefusal } from '@tenure/core';
import type { Call } from '../transport/transport.ts';
import { statusOfCoreError } from './status-of.ts';

/** Who asks; undefined while authentication is disabled. */
export type RequestedBy = Pick<Call, 'requester'>;

/**
 * The command with its requester, whose permission apply checks. Throws the status for a client without an identity,
 * which would otherwise fill the log.
 */
export function requested(command: CommandBody, by: RequestedBy['requester']): Command {
  if (by === undefined) return command;
  throwRefused(identityRefusal(by));
  return { ...command, by };
}

/** Throws the status of a refusal. */
export function throwRefused(refused: CoreError | undefined): void {
  if (refused !== undefined) throw statusOfCoreError(refused);
}
