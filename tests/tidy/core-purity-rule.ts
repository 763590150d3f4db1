import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

/** Globals that would let two servers differ after the same entries, or that do I/O. */
const bannedNames = new Map([
  ['Date', 'take the time as an argument'],
  ['Math.random', 'take random numbers as arguments'],
  ['performance', 'take the time as an argument'],
  ['crypto', 'take ids and digests as arguments'],
  ['setTimeout', 'return what is to be done later as data'],
  ['setInterval', 'return what is to be done later as data'],
  ['setImmediate', 'return what is to be done later as data'],
  ['queueMicrotask', 'return what is to be done later as data'],
  ['process', 'take settings as arguments'],
  ['Buffer', 'use strings with one character per byte, or Uint8Array'],
  ['console', 'return what happened as data'],
  ['fetch', 'the core does no I/O'],
  ['globalThis', 'the core has no surroundings'],
]);

/** `core` is a function of its arguments: no I/O, no clock, no randomness. Its tests are exempt. */
export function checkCorePurity(source: ParsedSource): Violation[] {
  if (!source.path.startsWith('packages/core/src/') || isTestCode(source.path)) return [];
  const imports = source.imports
    .filter((imported) => imported.from.startsWith('node:'))
    .map(({ from, line }) => ({
      path: source.path,
      line,
      rule: 'core purity',
      message: `core may not import ${from}`,
    }));
  const names = source.names.flatMap(({ name, line }) => {
    const advice = bannedNames.get(name);
    if (advice === undefined) return [];
    return [{ path: source.path, line, rule: 'core purity', message: `${name} is banned in core: ${advice}` }];
  });
  return [...imports, ...names];
}
