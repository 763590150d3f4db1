import type { Random } from '../random.ts';

/** For tests in which nothing shall hang on chance: always the least there is. */
export const noChance: Random = {
  bytes: (count) => Buffer.alloc(count),
  fraction: () => 0,
};
