import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';

/** The three drivers have different error codes, but all of them have SQLite's messages. */
const meanings: readonly (readonly [RegExp, BackendErrorCode, string])[] = [
  [/no such (table|column)/i, 'not-migrated', 'call await backend.migrate() once, or run sql/sqlite/0001-leases.sql'],
  [/not open|has been closed|is closed|finalized/i, 'closed', 'close the backend before its database'],
  [/within a transaction/i, 'misconfigured', 'a transaction is open on it: give the backend a connection of its own'],
  [/readonly|read-only/i, 'misconfigured', 'open the file for writing, in a folder that can be written to'],
  [/not a database|unable to open|malformed|permission|not authorized/i, 'misconfigured', 'look at the file'],
  [/too big|constraint failed|bind/i, 'refused', 'it does not take these values'],
];

/** Another connection has locked the file; the statement had no effect. */
export function isBusy(error: unknown): boolean {
  return (
    error instanceof Error && /database( table| schema)? is locked|SQLITE_BUSY|SQLITE_LOCKED/i.test(wordsOf(error))
  );
}

export function backendErrorOf(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const words = error instanceof Error ? wordsOf(error) : String(error);
  const found = meanings.find(([pattern]) => pattern.test(words));
  if (found === undefined) return new BackendError('sqlite', 'unavailable', words, { cause: error });
  return new BackendError('sqlite', found[1], `${found[2]} (${words})`, { cause: error });
}

function wordsOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? `${error.message}, ${error.code}` : error.message;
}
