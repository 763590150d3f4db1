import { testLargeReads } from './robustness/large-reads-suite.ts';

/** `large-reads.long` tests a million of each. */
testLargeReads({ keys: 60_000, leases: 60_000, rounds: 3 });
