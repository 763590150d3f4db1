import { describe, inject } from 'vitest';
import { describeFuzz } from './robustness/fuzz-suite.ts';

const seed = inject('seed');

describe(`20,000 random inputs (TENURE_TEST_SEED=${seed})`, () => {
  describeFuzz({ seed, refused: 12_000, hostile: 6_000, any: 2_000, outlastsDead: false });
});
