import { describe, inject } from 'vitest';
import { describeMemory } from './robustness/memory-suite.ts';

// `memory.e2e` has a fifth of it, with half of the growth.
describe.runIf(inject('effort') === 'soak')('the memory of a server', () => {
  describeMemory({ watches: 20_000, keepAliveStreams: 20_000, leases: 50_000, maxGrowthMiB: 8 });
});
