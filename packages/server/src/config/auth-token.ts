import { parseGoDurationMs } from '@tenure/protocol';
import { ConfigError } from './config-error.ts';

export const jwtSignMethods = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'HS256',
  'HS384',
  'HS512',
] as const;
export type JwtSignMethod = (typeof jwtSignMethods)[number];

/** JSON Web Tokens, signed with a key that all servers have. */
export interface JwtSetting {
  readonly kind: 'jwt';
  readonly signMethod: JwtSignMethod;
  /** PEM files, of which at most one is '': not given. For HS256 and the like the private one is the secret itself. */
  readonly publicKeyFile: string;
  readonly privateKeyFile: string;
  readonly ttlMs: number;
}

/** How users are identified after they have logged in. */
export type AuthTokenSetting = { readonly kind: 'simple' } | JwtSetting;

const defaultTtlMs = 300_000;
const minTtlMs = 1_000;
const maxTtlMs = 365 * 86_400_000;
const optionNames = ['pub-key', 'priv-key', 'sign-method', 'ttl'];

/** As in etcd: 'simple', or 'jwt' with options after commas. Throws ConfigError with the reason. */
export function parseAuthToken(text: string): AuthTokenSetting {
  if (text === 'simple') return Object.freeze({ kind: 'simple' });
  const [kind, ...parts] = text.split(',');
  if (kind !== 'jwt') throw new ConfigError('must be simple, or jwt,priv-key=FILE,sign-method=METHOD');
  const options = new Map<string, string>();
  for (const part of parts) {
    const [name = '', ...value] = part.split('=');
    if (!optionNames.includes(name)) throw new ConfigError(`must have no other options than ${optionNames.join(', ')}`);
    if (options.has(name)) throw new ConfigError(`must have ${name} once`);
    options.set(name, value.join('='));
  }
  const signMethod = jwtSignMethods.find((each) => each === options.get('sign-method'));
  if (signMethod === undefined) throw new ConfigError(`must have a sign-method of ${jwtSignMethods.join(', ')}`);
  const publicKeyFile = options.get('pub-key') ?? '';
  const privateKeyFile = options.get('priv-key') ?? '';
  if (signMethod.startsWith('HS')) {
    if (privateKeyFile === '' || publicKeyFile !== '') {
      throw new ConfigError(`must have priv-key=FILE with the secret of ${signMethod}, and no pub-key`);
    }
  } else if (publicKeyFile === '' && privateKeyFile === '') {
    throw new ConfigError('must have priv-key=FILE, or pub-key=FILE on a server that issues no tokens');
  }
  return Object.freeze({ kind: 'jwt', signMethod, publicKeyFile, privateKeyFile, ttlMs: ttlOf(options.get('ttl')) });
}

function ttlOf(text: string | undefined): number {
  if (text === undefined) return defaultTtlMs;
  const ms = parseGoDurationMs(text);
  if (ms !== undefined && ms >= minTtlMs && ms <= maxTtlMs) return ms;
  throw new ConfigError('must have a ttl from 1s to 8760h, such as 5m');
}
