import { describe } from 'vitest';
import { describeMemory } from './robustness/memory-suite.ts';

describe('the memory of a server', () => {
  describeMemory({ watches: 20_000, keepAliveStreams: 20_000, leases: 50_000 });
});
