import { describe, inject } from 'vitest';
import { describeMemory } from './robustness/memory-suite.ts';

const times = { commit: 1, ci: 1, soak: 10 }[inject('effort')];

describe('the memory of a server', () => {
  describeMemory({
    watches: 20_000 * times,
    keepAliveStreams: 20_000 * times,
    leases: 50_000 * times,
    maxGrowthMiB: 8,
  });
});
