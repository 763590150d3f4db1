/** What a hash costs: 2^log2N steps of `128 * r` bytes of memory each, `p` times. */
export interface ScryptCosts {
  readonly log2N: number;
  readonly r: number;
  readonly p: number;
}

export interface ScryptHash {
  readonly costs: ScryptCosts;
  readonly salt: Buffer;
  readonly derived: Buffer;
}

/**
 * One of OWASP's recommended sets of equal strength, with the memory of 32 MiB that a small server has: about 0.2 s of
 * one core.
 */
export const defaultScryptCosts: ScryptCosts = { log2N: 15, r: 8, p: 3 };

/** The costs for a number of `--bcrypt-cost`, whose default is 10, as etcd's: each step doubles time and memory. */
export function scryptCosts(bcryptCost: number): ScryptCosts {
  return { ...defaultScryptCosts, log2N: defaultScryptCosts.log2N + bcryptCost - 10 };
}

/** Limits on the costs that a hash text may name: four times the memory, or ten times the work, of the default. */
const maxMemoryBytes = 128 * 1024 * 1024;
const maxSteps = 10 * 2 ** 15 * 8 * 3;
/** A short hash would accept many passwords. */
const minHashBytes = 16;
const maxHashBytes = 64;
const maxTextChars = 256;

export function memoryOf({ log2N, r }: ScryptCosts): number {
  return 128 * r * 2 ** log2N;
}

/**
 * The PHC string format: '$scrypt-sha512$ln=15,r=8,p=3$SALT$HASH' in base64 without padding: scrypt of the
 * SHA-512 of the password.
 */
export function formatScryptHash({ costs: { log2N, r, p }, salt, derived }: ScryptHash): string {
  return `$scrypt-sha512$ln=${log2N},r=${r},p=${p}$${unpadded(salt)}$${unpadded(derived)}`;
}

const format = /^\$scrypt-sha512\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** Undefined for another format, or for costs beyond the limits. */
export function parseScryptHash(text: string): ScryptHash | undefined {
  const match = text.length > maxTextChars ? null : format.exec(text);
  if (match === null) return undefined;
  const costs: ScryptCosts = { log2N: Number(match[1]), r: Number(match[2]), p: Number(match[3]) };
  const { log2N, r, p } = costs;
  if (log2N < 1 || r < 1 || p < 1 || memoryOf(costs) > maxMemoryBytes || 2 ** log2N * r * p > maxSteps)
    return undefined;
  const salt = Buffer.from(match[4] ?? '', 'base64');
  const derived = Buffer.from(match[5] ?? '', 'base64');
  if (derived.length < minHashBytes || derived.length > maxHashBytes) return undefined;
  return { costs, salt, derived };
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
