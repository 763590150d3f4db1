/** A password that a client shows. */
export interface PasswordAttempt {
  readonly user: string;
  readonly password: string;
  /** Of the user; undefined for an unknown user, or one without a password. */
  readonly hash: string | undefined;
  /** The address of the connection. */
  readonly client: string;
  /** Aborts when no caller waits for the answer any more. */
  readonly signal: AbortSignal;
}

/**
 * Hashes and checks passwords, off the event loop. A client that guesses passwords waits for itself and not before
 * others: `client` is the address of the connection. Both reject with GrpcStatus:
 * TooManyRequests when too many wait, Stopped after `stop`, and when the signal aborts. Passwords have any length, are
 * not normalized, and may contain NUL.
 */
export interface PasswordHasher {
  /** A text that holds the algorithm with its costs, a salt and the hash. */
  hash(password: string, client: string, signal: AbortSignal): Promise<string>;
  /**
   * Whether the password is that of the hash. Takes as long for an undefined or unreadable hash as for a wrong
   * password. Failures slow down later attempts of the same client; a success does not make up for them.
   */
  check(attempt: PasswordAttempt): Promise<boolean>;
  stop(): void;
}
