import 'vitest';

/**
 * The cost of a run. `commit` is `npm test`: each feature once, in minutes. `ci` is the short form of the long suites.
 * `soak` is the full length, with fresh seeds.
 */
export type Effort = 'commit' | 'ci' | 'soak';

declare module 'vitest' {
  interface ProvidedContext {
    /** `inject('effort')` in a test: it may choose a number of rounds, never an assertion. */
    readonly effort: Effort;
    /** The seed of all randomness in this run. Fixed, except in a soak. */
    readonly seed: number;
  }
}

const efforts: readonly Effort[] = ['commit', 'ci', 'soak'];

export function effortOf(text: string | undefined): Effort {
  const effort = efforts.find((each) => each === (text ?? 'commit'));
  if (effort === undefined) throw new Error(`TENURE_TEST_EFFORT is one of ${efforts.join(', ')}, not ${text}`);
  return effort;
}
