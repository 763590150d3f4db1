import { randomBytes } from 'node:crypto';
import type { Random } from './random.ts';

/** The randomness of the process. */
export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};
