import { describe } from 'vitest';
import { describeMemory } from './robustness/memory-suite.ts';

// `memory.long` has more, and allows as much for each of them.
describe('the memory of a server', { timeout: 180_000 }, () => {
  describeMemory({ watches: 20_000, keepAliveStreams: 5_000, leases: 10_000, maxGrowthMiB: 4 });
});
