import type { Hold } from '../leases/hold.ts';
import { sqlIdentifier } from './sql-identifier.ts';

export interface FenceClause {
  /** For the SET of an UPDATE: `fence = 42`. */
  readonly set: string;
  /** For its WHERE: `fence <= 42`. */
  readonly where: string;
}

/**
 * The check of the fencing token for a row that has a column for it (`fence bigint NOT NULL DEFAULT 0`). A write with
 * an older token than the last one changes no row. The same text works in every SQL dialect; the token is inlined.
 *
 * ```ts
 * const fence = fenceClause(hold);
 * const { rowCount } = await pool.query(`UPDATE jobs SET ${fence.set}, … WHERE id = $1 AND ${fence.where}`, [id]);
 * requireGuarded(rowCount, hold);
 * ```
 *
 * If the write depends on an earlier read, the read needs the clause too, as an UPDATE of only the token that returns
 * the row. Otherwise an older holder may still write between the two.
 */
export function fenceClause(hold: Pick<Hold, 'fencingToken'>, options: { readonly column?: string } = {}): FenceClause {
  const column = sqlIdentifier(options.column ?? 'fence');
  return { set: `${column} = ${hold.fencingToken}`, where: `${column} <= ${hold.fencingToken}` };
}
