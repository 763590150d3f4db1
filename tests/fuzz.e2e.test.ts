import { describe } from 'vitest';
import { describeFuzz } from './robustness/fuzz-suite.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000);

describe(`50,000 random inputs (FUZZ_SEED=${seed})`, () => {
  describeFuzz({ seed, refused: 32_000, hostile: 15_000, any: 3_000 });
});
