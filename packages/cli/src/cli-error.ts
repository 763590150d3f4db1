/** The kind of failure. A script reads it from the exit code. */
export type CliErrorCode =
  /** The server refused, a file could not be written, and the like. */
  | 'failed'
  /** The command line itself is wrong. */
  | 'usage'
  /** No server could be reached, or the connection broke. */
  | 'unreachable'
  /** No answer in time: a change may have been made or not. */
  | 'timeout'
  /** The lease was not acquired within the wait time. */
  | 'not-acquired'
  /** The lease was lost while it was needed. */
  | 'lost';

/**
 * The exit code of each; 0 is success. They are part of the command's interface. The last two are values that a command
 * under a lease rarely uses itself; timeout(1) has its codes for the same reason.
 */
export const exitCodes: Readonly<Record<CliErrorCode, number>> = {
  failed: 1,
  usage: 2,
  unreachable: 3,
  timeout: 4,
  'not-acquired': 124,
  lost: 125,
};

/** Ends a command with one line on stderr and the exit code of its `code`. */
export class CliError extends Error {
  readonly code: CliErrorCode;

  constructor(code: CliErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'CliError';
    this.code = code;
  }
}
