export { mysqlBackend } from './mysql-backend.ts';
export type { MysqlBackend, MysqlBackendOptions } from './mysql-backend.ts';
export type { MysqlConnection, MysqlPool } from './mysql-pool.ts';
