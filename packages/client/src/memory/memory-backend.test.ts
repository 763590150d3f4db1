import { afterAll, describe, inject, test } from 'vitest';
import { backendConformance } from '../testing/index.ts';
import { memoryBackend } from './memory-backend.ts';

describe('memoryBackend', () => {
  backendConformance(
    () => {
      // The backend lives in this process, so there is only one.
      const backend = memoryBackend();
      return { open: () => backend, dispose: () => backend.close() };
    },
    {
      framework: { describe, test, afterAll },
      hints: ['came', 'updated', 'left', 'expired'],
      seed: inject('seed'),
    },
  );
});
