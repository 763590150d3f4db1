import { EngineError } from '../engine-error.ts';
import type { EngineTrouble } from '../engine-trouble.ts';

/** The operator's remedy for the database's error codes. Other errors are reported in the database's words. */
const advice: Readonly<Record<string, string>> = {
  '28P01': 'the password was refused: set the right one in the URL, in PGPASSWORD or in ~/.pgpass',
  '28000': 'the server does not let this user in: see pg_hba.conf and the name of the user',
  '3D000': 'make the database with createdb, or name the right one in the URL',
  '42501': 'the user lacks a privilege: make it the owner of the schema of the log, or grant it the privileges there',
  '42P01': 'a table of the log is gone: restore the schema from a backup, or remove it to begin with an empty log',
  '3F000': 'the schema of the log is gone: restore it from a backup, or restart to begin with an empty log',
  '53100': 'the disk of the database is full',
  '53300': 'the database has no connection left: each Tenure server holds up to five',
  '57P03': 'the database is starting or stopping',
  '25006': 'the server is read-only: it is a standby, or default_transaction_read_only is set',
};

/** An error sent by the database has an SQLSTATE; one of the network has none. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const noPassword = 'put it in the URL, in PGPASSWORD or in ~/.pgpass';

/** The driver's error text when it has no password to send. */
function asksForPassword(error: unknown): boolean {
  return error instanceof Error && /client password must be/.test(error.message);
}

/** The error in one line, with its remedy. */
export function describeFailure(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describeFailure).join('; ');
  const message = error instanceof Error ? error.message || error.name : String(error);
  if (asksForPassword(error)) return `the database asks for a password (${noPassword})`;
  const help = advice[sqlStateOf(error) ?? ''];
  return help === undefined ? message : `${message} (${help})`;
}

const troubles: readonly (readonly [RegExp, EngineTrouble])[] = [
  [/^53100$/, 'full'],
  [/^25006$/, 'readOnly'],
  [/^53300$/, 'busy'],
  [/^(28|3D|3F|42)/, 'refusing'],
  // A connection that ended or was refused, and a database that is starting or stopping.
  [/^(08|57P0)/, 'unreachable'],
];

/** The fault of the database; without an error from the database it follows from the connection error. */
export function troubleOf(error: unknown): EngineTrouble {
  if (error instanceof EngineError && error.trouble !== undefined) return error.trouble;
  const [said] = [error, ...causesOf(error)].filter((cause) => sqlStateOf(cause) !== undefined);
  if (said === undefined) return [error, ...causesOf(error)].some(asksForPassword) ? 'refusing' : 'unreachable';
  return troubles.find(([states]) => states.test(sqlStateOf(said) ?? ''))?.[1] ?? 'failing';
}

/** The database cannot be reached now, and the operation has certainly not taken effect. */
export function unavailable(what: string, cause: unknown): EngineError {
  return new EngineError('unavailable', `${what}: ${describeFailure(cause)}`, { cause, trouble: troubleOf(cause) });
}

/** Classes and codes that waiting does not resolve: authorization, an unknown database, missing privileges. */
const permanent = /^(28|3D|42)/;

function isForGood(cause: unknown): boolean {
  if (cause instanceof EngineError) return cause.code === 'unusable';
  return permanent.test(sqlStateOf(cause) ?? '') || asksForPassword(cause);
}

/** Why the engine cannot be opened: `unusable` if every host refuses permanently, otherwise `unavailable`. */
export function openingRefused(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const causes = causesOf(error);
  const isPermanent = causes.length > 0 && causes.every(isForGood);
  const message = `the log in PostgreSQL cannot be opened: ${describeFailure(error)}`;
  const isSilent = causes.every((cause) => sqlStateOf(cause) === undefined) && !isPermanent;
  const help = isSilent ? `; ${[error, ...causes].some(isUnfinished) ? letItFinish : startIt}` : '';
  return new EngineError(isPermanent ? 'unusable' : 'unavailable', message + help, { cause: error });
}

const startIt = 'start the database, or give its right address with --engine';
const letItFinish =
  'it takes connections and does not finish what it is asked: it is overloaded, or its commits wait for a standby ' +
  'that is not there (synchronous_standby_names)';

/** The text of `postgres-session.ts` for a statement; the text for a connection is the driver's. */
function isUnfinished(cause: unknown): boolean {
  return cause instanceof Error && cause.message.includes('did not answer within');
}

/** The causes of an error, for example of several hosts. */
export function causesOf(error: unknown): readonly unknown[] {
  if (sqlStateOf(error) !== undefined || !(error instanceof Error)) return [error];
  return error.cause instanceof AggregateError ? error.cause.errors : [error.cause];
}
