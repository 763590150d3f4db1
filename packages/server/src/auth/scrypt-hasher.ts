import { createHash, scrypt, timingSafeEqual } from 'node:crypto';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { HashQueue } from './hash-queue.ts';
import type { PasswordAttempt, PasswordHasher } from './password-hasher.ts';
import { defaultScryptCosts, formatScryptHash, memoryOf, parseScryptHash } from './scrypt-text.ts';
import type { ScryptCosts, ScryptHash } from './scrypt-text.ts';

const saltBytes = 16;
const hashBytes = 32;
/** Hashes with scrypt. A hash names its costs and is checked by them, so later versions may raise them. */
export class ScryptHasher implements PasswordHasher {
  readonly #queue: HashQueue;
  readonly #random: Random;
  readonly #costs: ScryptCosts;
  /** Hashed for users without a hash of their own, so that the time tells nothing of them. */
  readonly #unknownUser: ScryptHash;

  constructor({ clock, random, costs }: { clock: Clock; random: Random; costs?: ScryptCosts }) {
    this.#queue = new HashQueue(clock);
    this.#random = random;
    this.#costs = costs ?? defaultScryptCosts;
    this.#unknownUser = { costs: this.#costs, salt: random.bytes(saltBytes), derived: random.bytes(hashBytes) };
  }

  async hash(password: string, client: string, signal: AbortSignal): Promise<string> {
    const secret = secretOf(password);
    const salt = this.#random.bytes(saltBytes);
    const costs = this.#costs;
    let text = '';
    const derive = (): Promise<Buffer> => derivedKey(secret, { costs, salt, bytes: hashBytes });
    await this.#queue.run({ client, signal, sharing: undefined, derive }, (derived) => {
      text = formatScryptHash({ costs, salt, derived });
      return true;
    });
    return text;
  }

  check({ user, password, hash, client, signal }: PasswordAttempt): Promise<boolean> {
    const secret = secretOf(password);
    const known = hash === undefined ? undefined : parseScryptHash(hash);
    const { costs, salt, derived: expected } = known ?? this.#unknownUser;
    // The user is part of it: two unknown users must not share a hash where two known ones do not.
    const sharing = createHash('sha256')
      .update(JSON.stringify([user, hash, secret.toString('base64')]))
      .digest('base64');
    const derive = (): Promise<Buffer> => derivedKey(secret, { costs, salt, bytes: expected.length });
    return this.#queue.run({ client, signal, sharing, derive }, (derived) => {
      const isEqual = timingSafeEqual(derived, expected);
      return isEqual && known !== undefined;
    });
  }

  stop(): void {
    this.#queue.stop();
  }
}

/**
 * Exactly one block of the HMAC with which scrypt begins. That fills a shorter key up with NUL, so that "a" and "a\0"
 * would be one password. And a password that waits takes no more memory than this, however long it is.
 */
function secretOf(password: string): Buffer {
  return createHash('sha512').update(password, 'utf8').digest();
}

function derivedKey(
  secret: Buffer,
  { costs, salt, bytes }: { readonly costs: ScryptCosts; readonly salt: Buffer; readonly bytes: number },
): Promise<Buffer> {
  const { log2N, r, p } = costs;
  // OpenSSL counts some more than the memory of the steps.
  const maxmem = 2 * memoryOf(costs) + 1024 * 1024;
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, bytes, { N: 2 ** log2N, r, p, maxmem }, (error, derived) => {
      if (error === null) resolve(derived);
      else reject(error);
    });
  });
}
