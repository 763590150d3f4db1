import 'vitest';

/**
 * How much a run may cost. `commit` is `npm test`: each feature once, in minutes. `ci` is the short form of the long
 * suites. `soak` is everything at full length, with fresh seeds.
 */
export type Effort = 'commit' | 'ci' | 'soak';

declare module 'vitest' {
  interface ProvidedContext {
    /** `inject('effort')` in a test: choose a number of rounds by it, never an assertion. */
    readonly effort: Effort;
    /** The seed of whatever is random in this run. Fixed, except in a soak. */
    readonly seed: number;
  }
}

const efforts: readonly Effort[] = ['commit', 'ci', 'soak'];

export function effortOf(text: string | undefined): Effort {
  const effort = efforts.find((each) => each === (text ?? 'commit'));
  if (effort === undefined) throw new Error(`TENURE_TEST_EFFORT is one of ${efforts.join(', ')}, not ${text}`);
  return effort;
}
