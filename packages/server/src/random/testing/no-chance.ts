import type { Random } from '../random.ts';

/** For tests that must not depend on randomness: always the minimum. */
export const noChance: Random = {
  bytes: (count) => Buffer.alloc(count),
  fraction: () => 0,
};
