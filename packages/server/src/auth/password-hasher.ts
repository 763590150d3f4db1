/**
 * Hashes and checks passwords, off the event loop. Both reject with GrpcStatus TooManyRequests when too many wait:
 * `client` is whom the work is done for (the address of the connection), so that one that guesses passwords waits for
 * itself and not before others.
 */
export interface PasswordHasher {
  /** A text that holds the algorithm with its costs, a salt and the hash. */
  hash(password: string, client: string): Promise<string>;
  /**
   * Whether the password is that of the hash. Takes as long for undefined, an unknown user or one without a password,
   * as for a wrong password. Failures slow down later checks of the same client.
   */
  check(password: string, hash: string | undefined, client: string): Promise<boolean>;
}
