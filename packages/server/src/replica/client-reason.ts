import type { EngineTrouble, engineTroubles } from '../engines/engine-trouble.ts';

/**
 * Why a request is not answered. Clients see these texts and no others: in the trailer `tenure-reason`, in /readyz and
 * in Status. Names, addresses and the messages of other systems appear only in the server's log.
 */
export const clientReasons = {
  noLeader: 'there is no leader',
  leaderUnknown: 'the address of the leader is not known',
  leaderUnreachable: 'the leader cannot be reached',
} as const;

export type ClientReason = (typeof clientReasons)[keyof typeof clientReasons] | (typeof engineTroubles)[EngineTrouble];
