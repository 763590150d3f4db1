import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';

/** The SDK's names of errors that a retry does not solve. All others are `unavailable`. */
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

/** The SDK retries requests by itself, and the error of the last attempt says nothing about the attempts before. */
function wasRepeated(error: unknown): boolean {
  const { attempts } = (error as { $metadata?: { attempts?: unknown } } | undefined)?.$metadata ?? {};
  return typeof attempts === 'number' && attempts > 1;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function messageOf(code: BackendErrorCode, table: string, words: string): string {
  if (code === 'not-migrated') {
    return `there is no table ${table}: call migrate() once, or create it with the keys name (hash) and row (range)`;
  }
  // DynamoDB takes items of 400 KB.
  if (/item size/i.test(words)) return `the queue of a name is too large for one item: ${words}`;
  return words;
}
