export interface FailedSeed {
  readonly seed: number;
  /** How many histories it took to fail, at least. */
  readonly runs: number;
  /** What it found. */
  readonly found: string;
}

/** Every seed that ever failed, with what it found. They run first, each on servers of its own, whatever the effort. */
export const failedSeeds: readonly FailedSeed[] = [
  { seed: 1_171_390_101, runs: 2, found: 'a compaction of revision -1 that was taken for one of revision 0' },
];
