export { fenceClause } from './fence-clause.ts';
export type { FenceClause } from './fence-clause.ts';
export { fenceStatements } from './fence-statements.ts';
export type { FenceStatements, FenceStatementsOptions, SqlDialect, SqlStatement } from './fence-statements.ts';
export { requireGuarded } from './require-guarded.ts';
