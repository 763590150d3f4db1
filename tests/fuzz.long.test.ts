import { describe } from 'vitest';
import { describeFuzz } from './robustness/fuzz-suite.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000);

describe(`a million random inputs (FUZZ_SEED=${seed})`, () => {
  describeFuzz({ seed, refused: 600_000, hostile: 250_000, any: 150_000 });
});
