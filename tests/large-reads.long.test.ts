import { inject } from 'vitest';
import { testLargeReads } from './robustness/large-reads-suite.ts';

testLargeReads({
  keys: 1_000_000,
  leases: 1_000_000,
  rounds: { commit: 1, ci: 2, soak: 5 }[inject('effort')],
});
