import { readJwtKeys } from './auth/jwt-keys.ts';
import { JwtTokens } from './auth/jwt-tokens.ts';
import { SimpleTokens } from './auth/simple-tokens.ts';
import type { TokenProvider } from './auth/token-provider.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { Random } from './random/random.ts';
import type { ReplicaAccess } from './replica/replica-access.ts';
import type { Clock } from './time/clock.ts';

/** The tokens that `--auth-token` names. Throws with a message for the operator when a key cannot be read. */
export function createTokens(
  { authToken, authTokenTtlMs }: Pick<ServerConfig, 'authToken' | 'authTokenTtlMs'>,
  parts: { readonly replica: ReplicaAccess; readonly clock: Clock; readonly random: Random },
): TokenProvider {
  if (authToken.kind === 'simple') return new SimpleTokens({ ...parts, ttlMs: authTokenTtlMs });
  const { signMethod, ttlMs } = authToken;
  return new JwtTokens({ ...parts, keys: readJwtKeys(authToken), signMethod, ttlMs });
}
