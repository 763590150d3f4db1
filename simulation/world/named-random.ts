import { SeededRandom } from '@tenure/test-support';

/** Random numbers that depend on the seed and the name only, so that one part never shifts another's. */
export function namedRandom(seed: number, name: string): SeededRandom {
  let mixed = seed;
  for (let at = 0; at < name.length; at += 1) mixed = Math.imul(mixed ^ name.charCodeAt(at), 0x01000193);
  return new SeededRandom(mixed ^ seed);
}
