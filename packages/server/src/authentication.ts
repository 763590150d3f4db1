import type { Applied, Entry } from '@tenure/core';
import { readJwtKeys } from './auth/jwt-keys.ts';
import { JwtTokens } from './auth/jwt-tokens.ts';
import type { PasswordHasher } from './auth/password-hasher.ts';
import { ScryptHasher } from './auth/scrypt-hasher.ts';
import { scryptCosts } from './auth/scrypt-text.ts';
import { SimpleTokens } from './auth/simple-tokens.ts';
import type { TokenProvider } from './auth/token-provider.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { Random } from './random/random.ts';
import type { ReplicaAccess } from './replica/replica-access.ts';
import type { Clock } from './time/clock.ts';

interface AuthenticationOptions {
  readonly config: Pick<ServerConfig, 'authToken' | 'authTokenTtlMs' | 'bcryptCost'>;
  readonly replica: ReplicaAccess;
  readonly clock: Clock;
  readonly random: Random;
  readonly passwords: PasswordHasher | undefined;
}

/** The parts by which clients log in: the hashing of passwords, and the tokens that `--auth-token` names. */
export class Authentication {
  readonly passwords: PasswordHasher;
  readonly tokens: TokenProvider;
  readonly #replica: ReplicaAccess;

  /** Throws with a message for the operator when a key cannot be read. */
  constructor(options: AuthenticationOptions) {
    const { replica, clock, random } = options;
    this.#replica = replica;
    this.tokens = createTokens(options);
    const costs = scryptCosts(options.config.bcryptCost);
    this.passwords = options.passwords ?? new ScryptHasher({ clock, random, costs });
  }

  /** To be called for each entry that is applied after recovery. */
  applied({ commands }: Entry, { responses }: Applied): void {
    if (!this.#replica.state.auth.enabled) return;
    for (const [position, command] of commands.entries()) this.tokens.applied(command, responses[position]!);
  }

  stop(): void {
    this.passwords.stop();
    this.tokens.stop();
  }
}

function createTokens({ config, replica, clock, random }: AuthenticationOptions): TokenProvider {
  const { authToken, authTokenTtlMs: ttlMs } = config;
  if (authToken.kind === 'simple') return new SimpleTokens({ replica, clock, random, ttlMs });
  const keys = readJwtKeys(authToken);
  return new JwtTokens({ replica, clock, keys, signMethod: authToken.signMethod, ttlMs: authToken.ttlMs });
}
