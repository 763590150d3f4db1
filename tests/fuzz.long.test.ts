import { describe, inject } from 'vitest';
import { describeFuzz } from './robustness/fuzz-suite.ts';

const seed = inject('seed');
const thousands = { commit: 30, ci: 30, soak: 1_000 }[inject('effort')];
const inputs = (share: number): number => thousands * 1_000 * share;

describe(`${thousands} thousand random inputs (TENURE_TEST_SEED=${seed})`, () => {
  describeFuzz({ seed, refused: inputs(0.6), hostile: inputs(0.25), any: inputs(0.15), outlastsDead: true });
});
