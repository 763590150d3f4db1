import { randomInt } from 'node:crypto';
import type { Effort } from './effort.ts';

/** An arbitrary number. It stays the same, so that a failed run fails again. */
const fixedSeed = 20_261;
const seedLimit = 2 ** 31;

/** `TENURE_TEST_SEED` if it is set, a fresh seed in a soak, and else a constant. */
export function seedOf(text: string | undefined, effort: Effort): number {
  if (text === undefined) return effort === 'soak' ? randomInt(seedLimit) : fixedSeed;
  const seed = Number(text);
  if (!Number.isInteger(seed) || Math.abs(seed) > seedLimit) {
    throw new Error(`TENURE_TEST_SEED is an integer of 32 bits, not ${text}`);
  }
  return seed;
}
