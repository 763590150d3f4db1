export interface FailedSeed {
  readonly seed: number;
  /** The minimum number of histories needed to fail. */
  readonly runs: number;
  /** The fault that it found. */
  readonly found: string;
}

/** Every seed that ever failed, with the fault that it found. They run first, each on new servers, at any effort. */
export const failedSeeds: readonly FailedSeed[] = [
  { seed: 1_171_390_101, runs: 2, found: 'a compaction of revision -1 that was taken for one of revision 0' },
];
