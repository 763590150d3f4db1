import type { PasswordAttempt, PasswordHasher } from '../../packages/server/src/auth/password-hasher.ts';

/** Passwords as they are, in place of scrypt, whose threads take real time. */
export class PlainPasswords implements PasswordHasher {
  async hash(password: string): Promise<string> {
    return plainHash(password);
  }

  async check({ password, hash }: PasswordAttempt): Promise<boolean> {
    return hash === plainHash(password);
  }

  stop(): void {}
}

export function plainHash(password: string): string {
  return `plain ${password}`;
}
