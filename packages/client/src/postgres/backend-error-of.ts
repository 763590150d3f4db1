import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';

interface Meaning {
  readonly code: BackendErrorCode;
  /** What to do about it; undefined when the driver's message is enough. */
  readonly advice?: string;
}

const notMigrated: Meaning = {
  code: 'not-migrated',
  advice: 'its tables are missing or old: call await backend.migrate() once, or run sql/postgres/0001-leases.sql',
};

/** By SQLSTATE, or by its class of two letters. */
const meanings: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['42P01', notMigrated],
  ['42883', notMigrated],
  ['42703', notMigrated],
  ['3F000', notMigrated],
  ['42501', { code: 'misconfigured', advice: 'grant the user the rights that docs/backends/postgres.md names' }],
  ['28', { code: 'misconfigured', advice: 'the pool needs a user and a password that the database takes' }],
  ['3D000', { code: 'misconfigured', advice: 'the pool names a database that does not exist' }],
  ['25006', { code: 'unavailable', advice: 'this is a standby or set to read-only: leases need the primary' }],
  ['42', { code: 'misconfigured' }],
  ['0A', { code: 'misconfigured' }],
  ['22', { code: 'refused' }],
  ['23', { code: 'refused' }],
  ['54', { code: 'refused' }],
]);

/** Messages of the driver itself, whose errors have no code. */
const driverMessages: readonly (readonly [RegExp, Meaning])[] = [
  [/Cannot use a pool after calling end/i, { code: 'closed', advice: 'close the backend before its pool' }],
  [/password must be a string|no pg_hba|SASL|SSL/i, { code: 'misconfigured' }],
];

/** The statement was rolled back because of concurrent ones, so it may be sent again. */
export function isRolledBack(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40001' || state === '40P01';
}

export function backendErrorOf(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const message = messageOf(error);
  const { code, advice } = meaningOf(sqlState(error), message);
  return new BackendError('postgres', code, advice === undefined ? message : `${advice} (${message})`, {
    cause: error,
  });
}

function meaningOf(state: string | undefined, message: string): Meaning {
  const known = meanings.get(state ?? '') ?? meanings.get(state?.slice(0, 2) ?? '');
  if (known !== undefined) return known;
  const fallback: Meaning = { code: 'unavailable' };
  return state === undefined ? (driverMessages.find(([pattern]) => pattern.test(message))?.[1] ?? fallback) : fallback;
}

function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** Some connection failures have their message only in the errors that they contain. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
