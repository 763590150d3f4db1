import { describe, test } from 'vitest';
import { engineConformance } from '../testing/engine-conformance.ts';
import { memoryEngine } from './memory-engine.ts';

describe('the memory engine', () => {
  for (const { name, run } of engineConformance({ isDurable: false })) {
    test(name, async () => {
      const engine = memoryEngine();
      await run({ open: () => Promise.resolve(engine), dispose: () => engine.close() });
      await engine.close();
    });
  }
});
