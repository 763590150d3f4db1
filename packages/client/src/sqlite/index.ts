export { sqliteBackend } from './sqlite-backend.ts';
export type { SqliteBackend, SqliteBackendOptions } from './sqlite-backend.ts';
export type { SqliteDatabase, SqliteStatement } from './sqlite-database.ts';
