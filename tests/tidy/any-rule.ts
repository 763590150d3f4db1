import type { ParsedSource } from './parsed-source.ts';
import type { Violation } from './repository.ts';

/** The type `any` disables type checking of every expression that it reaches. */
export function checkAny({ path, anyLines }: ParsedSource): Violation[] {
  if (path.endsWith('.gen.ts')) return [];
  return anyLines.map((line) => ({ path, line, rule: 'any', message: 'use unknown and narrow it' }));
}
