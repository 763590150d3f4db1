import { BackendError, TenureError } from 'tenure';
import { EtcdError } from 'tenure/etcd';
import { CliError, type CliErrorCode } from './cli-error.ts';

const outcomeUnknown = 'a change may have been made or not';
const deadlineExceeded = 4;
const unavailable = 14;
/** The deadline errors of the client and of a server. etcd 3.4 sends the latter with another status. */
const ownDeadline = /^Deadline exceeded|^(?:etcdserver: )?context deadline exceeded$/;
/** The server's own deadline passed: it may have executed the request, whatever the status says. */
const serverDeadline = 'etcdserver: request timed out';
/** A server may send this for a write it has done, since it checks its quota again afterwards. */
const noSpace = 'etcdserver: mvcc: database space exceeded';

/** Advice to the user for errors of the server. */
const advice: ReadonlyMap<string, string> = new Map([
  ['etcdserver: user name is empty', 'give --user, and the password in TENURE_PASSWORD'],
  ['etcdserver: authentication failed, invalid user ID or password', 'see --user and TENURE_PASSWORD'],
  ['etcdserver: root user does not exist', 'tenure user add root'],
  ['etcdserver: root user does not have root role', 'tenure user grant-role root root'],
]);

/**
 * Turns an error of the library into a one-line message with an exit code. `timeoutMs` is the limit of one call. Other
 * errors are returned unchanged.
 */
export function explainFailure(error: unknown, timeoutMs: number): unknown {
  if (error instanceof EtcdError) return etcdFailure(error, timeoutMs);
  if (error instanceof BackendError) {
    if (error.cause instanceof EtcdError) return etcdFailure(error.cause, timeoutMs);
    return new CliError(error.backendCode === 'unavailable' ? 'unreachable' : 'failed', error.message, {
      cause: error,
    });
  }
  if (!(error instanceof TenureError)) return error;
  return new CliError(codes[error.code] ?? 'failed', error.message, { cause: error });
}

const codes: Readonly<Record<string, CliErrorCode>> = {
  'bad-input': 'usage',
  'held-elsewhere': 'not-acquired',
  'timed-out': 'not-acquired',
  lost: 'lost',
};

function etcdFailure(error: EtcdError, timeoutMs: number): CliError {
  const { etcdCode, details, endpoint, reason } = error;
  if (details.startsWith('Authenticate is not implemented')) {
    const message = `${endpoint} knows no users yet: leave out --user and TENURE_USER`;
    return new CliError('failed', message, { cause: error });
  }
  if (etcdCode === 'unreachable') return new CliError('unreachable', unreachable(details), { cause: error });
  const status = grpcStatusOf(error.cause);
  if (ownDeadline.test(details)) {
    const message = `${endpoint} did not answer within ${timeoutMs} ms: ${outcomeUnknown} (try: tenure status)`;
    return new CliError('timeout', message, { cause: error });
  }
  if (status === unavailable && !details.startsWith('etcdserver:')) {
    const message = `the connection to ${endpoint} broke before the answer came: ${outcomeUnknown} (${details})`;
    return new CliError('unreachable', message, { cause: error });
  }
  if (/^Received HTTP status code \d+/.test(details)) {
    const message = `${endpoint} answered with HTTP ${details.slice(-3)}: is that an etcd or Tenure server?`;
    return new CliError('unreachable', message, { cause: error });
  }
  const isLate = status === deadlineExceeded || details.startsWith(serverDeadline);
  const code = isLate ? 'timeout' : status === unavailable ? 'unreachable' : 'failed';
  const text = details === '' ? `the server refused with gRPC status ${status}` : details;
  const words = reason === undefined ? text : `${text}: ${reason}`;
  const help = details === noSpace ? outcomeUnknown : advice.get(details);
  return new CliError(code, help === undefined ? words : `${words} (${help})`, { cause: error });
}

function grpcStatusOf(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined;
}

/** The library lists every endpoint with the reason why there is no connection to it. */
function unreachable(details: string): string {
  return details.split('; ').map(oneUnreachable).join('; ');
}

function oneUnreachable(text: string): string {
  const [, server, why = ''] = /^(\S+:\d+):? (.*)/s.exec(text) ?? [];
  if (server === undefined) return text;
  if (why.includes('ECONNREFUSED')) return `no server at ${server}; start one with: tenure serve`;
  if (/ENOTFOUND|EAI_AGAIN/.test(why)) return `no address is known for ${server}`;
  if (/Protocol error|does not answer/.test(why)) {
    return `${server} does not answer as an etcd or Tenure server does`;
  }
  const help = why === 'it does not speak TLS' ? ': leave out https:// and the flags for TLS' : '';
  return `cannot connect to ${server}: ${why}${help}`;
}
