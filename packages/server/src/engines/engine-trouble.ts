/**
 * The possible faults of the database that keeps the log, and the texts that clients receive. The texts name no host,
 * no user and no message of the database or its driver: those are for the server's log.
 */
export const engineTroubles = {
  unreachable: 'the database cannot be reached',
  full: 'the database is full',
  readOnly: 'the database is read-only',
  refusing: 'the database refuses this server',
  busy: 'the database has no connection left',
  unreplicated: 'the database waits for a standby',
  failing: 'the database fails',
} as const;

export type EngineTrouble = keyof typeof engineTroubles;
