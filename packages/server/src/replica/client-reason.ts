import type { EngineTrouble, engineTroubles } from '../engines/engine-trouble.ts';

/**
 * Why something is not answered, in the only words that clients are told: in the trailer `tenure-reason`, in /readyz
 * and in Status. Names, addresses and what others said are for the log of the server.
 */
export const clientReasons = {
  noLeader: 'there is no leader',
  leaderUnknown: 'the address of the leader is not known',
  leaderUnreachable: 'the leader cannot be reached',
} as const;

export type ClientReason = (typeof clientReasons)[keyof typeof clientReasons] | (typeof engineTroubles)[EngineTrouble];
