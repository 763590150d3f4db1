export type { OpenListenClient } from './notification-listener.ts';
export { postgresBackend } from './postgres-backend.ts';
export type { PostgresBackend, PostgresBackendOptions } from './postgres-backend.ts';
export type { PostgresClient, PostgresListenClient, PostgresPool, PostgresResult } from './postgres-pool.ts';
