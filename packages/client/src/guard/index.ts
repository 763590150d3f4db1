export { fenceClause } from './fence-clause.ts';
export type { FenceClause } from './fence-clause.ts';
export type { SqlDialect } from './fence-schema.ts';
export { fenceStatements } from './fence-statements.ts';
export type { FenceStatements, FenceStatementsOptions, SqlStatement } from './fence-statements.ts';
export { migrateFences } from './migrate-fences.ts';
export type { FenceTableOptions } from './migrate-fences.ts';
export { requireGuarded } from './require-guarded.ts';
