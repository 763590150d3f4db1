import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';

type Meaning = readonly [BackendErrorCode, string?];

const notMigrated: Meaning = [
  'not-migrated',
  'its tables are missing or old: call await backend.migrate() once, or run sql/mysql/0001-leases.sql',
];
const denied: Meaning = ['misconfigured', 'give the pool a user with the rights that docs/backends/mysql.md names'];
const readOnly: Meaning = ['unavailable', 'this is a replica or set to read-only: leases need the primary'];
const refused: Meaning = ['refused'];

/** By the server's error number, which is the same in MySQL and MariaDB. */
const meanings: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [1146, notMigrated],
  [1305, notMigrated],
  [1054, notMigrated],
  [1318, notMigrated],
  [1044, denied],
  [1045, denied],
  [1142, denied],
  [1143, denied],
  [1227, denied],
  [1370, denied],
  [1698, denied],
  [1046, ['misconfigured', 'the pool names no database']],
  [1049, ['misconfigured', 'the pool names a database that does not exist']],
  [1665, ['misconfigured', 'set binlog_format to ROW or MIXED']],
  [1290, readOnly],
  [1792, readOnly],
  [1836, readOnly],
  [1153, refused],
  [1264, refused],
  [1366, refused],
  [1406, refused],
]);

/** Deadlock, and MariaDB's "record has changed since last read". */
const rolledBack: ReadonlySet<number> = new Set([1213, 1020]);

/** The statement was rolled back because of concurrent ones, so it may be sent again. */
export function isRolledBack(error: unknown): boolean {
  return rolledBack.has(numberOf(error) ?? 0);
}

export function backendErrorOf(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const words = messageOf(error);
  const [code, advice] = /pool is closed/i.test(words)
    ? (['closed', 'close the backend before its pool'] as const)
    : (meanings.get(numberOf(error) ?? 0) ?? (['unavailable'] as const));
  return new BackendError('mysql', code, advice === undefined ? words : `${advice} (${words})`, { cause: error });
}

function numberOf(error: unknown): number | undefined {
  const number = error instanceof Error && 'errno' in error ? error.errno : undefined;
  return typeof number === 'number' ? number : undefined;
}

/** Some connection failures have their message only in the errors that they contain, or in their code. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  if (!(error instanceof Error)) return String(error);
  return error.message === '' && 'code' in error ? String(error.code) : error.message;
}
