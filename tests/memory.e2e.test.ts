import { describe, inject } from 'vitest';
import { describeMemory } from './robustness/memory-suite.ts';

const brief = { watches: 20_000, keepAliveStreams: 5_000, leases: 10_000, maxGrowthMiB: 4 };
/** A soak uses more of each, and allows the same growth. */
const full = { watches: 20_000, keepAliveStreams: 20_000, leases: 50_000, maxGrowthMiB: 8 };

describe('the memory of a server', { timeout: 180_000 }, () => {
  describeMemory(inject('effort') === 'soak' ? full : brief);
});
