import type { Hold } from '../leases/hold.ts';
import { sqlIdentifier } from './sql-identifier.ts';

export interface FenceClause {
  /** For the SET of an UPDATE: `fence = 42`. */
  readonly set: string;
  /** For its WHERE: `fence <= 42`. */
  readonly where: string;
}

/**
 * The check of the fencing token for a row that has a column for it (`fence bigint NOT NULL DEFAULT 0`): a write with a
 * token that is older than the last one changes nothing. Same in every SQL; the token stands in it as a number.
 *
 * ```ts
 * const fence = fenceClause(hold);
 * const { rowCount } = await pool.query(`UPDATE jobs SET ${fence.set}, … WHERE id = $1 AND ${fence.where}`, [id]);
 * requireGuarded(rowCount, hold);
 * ```
 *
 * A write that depends on what was read before needs the clause in the read too, as an UPDATE of the token alone that
 * returns the row. Otherwise an older holder may still write between the two.
 */
export function fenceClause(hold: Pick<Hold, 'fencingToken'>, options: { readonly column?: string } = {}): FenceClause {
  const column = sqlIdentifier(options.column ?? 'fence');
  return { set: `${column} = ${hold.fencingToken}`, where: `${column} <= ${hold.fencingToken}` };
}
