/**
 * What may be wrong with the database that keeps the log, and the words in which clients are told of it. They name no
 * host, no user and nothing that the database or its driver said: that is for the log of the server.
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
