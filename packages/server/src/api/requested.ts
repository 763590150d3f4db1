import type { Command, CommandBody, CoreError } from '@tenure/core';
import type { Call } from '../transport/transport.ts';
import { statusOfCoreError } from './status-of.ts';

/** Who asks; undefined while authentication is disabled. */
export type RequestedBy = Pick<Call, 'requester'>;

/** The command with its requester, whose permission apply checks. */
export function requested(command: CommandBody, by: RequestedBy['requester']): Command {
  return by === undefined ? command : { ...command, by };
}

/** Throws the status of a refusal. */
export function throwRefused(refused: CoreError | undefined): void {
  if (refused !== undefined) throw statusOfCoreError(refused);
}
