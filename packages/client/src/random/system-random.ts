import type { Random } from './random.ts';

/** The random values of the process. */
export const systemRandom: Random = {
  uuid: () => crypto.randomUUID(),
  uint64: () => crypto.getRandomValues(new BigUint64Array(1))[0]!,
};
