import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';

/** The SDK's names for what will not mend itself. Everything else may. */
const codes: ReadonlyMap<string, BackendErrorCode> = new Map([
  ['ResourceNotFoundException', 'not-migrated'],
  ['ValidationException', 'refused'],
  ['ItemCollectionSizeLimitExceededException', 'refused'],
  ['AccessDeniedException', 'misconfigured'],
  ['UnrecognizedClientException', 'misconfigured'],
  ['InvalidSignatureException', 'misconfigured'],
  ['MissingAuthenticationTokenException', 'misconfigured'],
  ['ExpiredTokenException', 'misconfigured'],
  ['CredentialsProviderError', 'misconfigured'],
]);

export function dynamoErrorOf(table: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const code = wasRepeated(error) ? 'unavailable' : (codes.get(nameOf(error)) ?? 'unavailable');
  const words = error instanceof Error ? error.message : String(error);
  return new BackendError('dynamodb', code, messageOf(code, table, words), { cause: error });
}

/** The SDK repeats requests by itself, and the error of the last one says nothing of those before it. */
function wasRepeated(error: unknown): boolean {
  const { attempts } = (error as { $metadata?: { attempts?: unknown } } | undefined)?.$metadata ?? {};
  return typeof attempts === 'number' && attempts > 1;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function messageOf(code: BackendErrorCode, table: string, words: string): string {
  if (code === 'not-migrated') {
    return `there is no table ${table}: call migrate() once, or make it with the keys name (hash) and row (range)`;
  }
  // DynamoDB takes items of 400 KB.
  if (/item size/i.test(words)) return `a line has grown beyond what one item holds: ${words}`;
  return words;
}
