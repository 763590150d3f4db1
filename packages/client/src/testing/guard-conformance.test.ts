import { afterAll, describe, expect, test } from 'vitest';
import { guardCases, guardConformance } from './guard-conformance.ts';
import type { ConformanceGuard } from './guard-conformance.ts';

/** A guard in a map, with the keys that `keyOf` derives from names. */
function mapGuard(keyOf: (name: string) => string, isTaken = (token: bigint, newest: bigint) => token >= newest) {
  const newest = new Map<string, bigint>();
  const guard: ConformanceGuard = {
    async write({ name, fencingToken }) {
      const key = keyOf(name);
      if (!isTaken(fencingToken, newest.get(key) ?? 0n)) return false;
      newest.set(key, fencingToken);
      return true;
    },
    dispose: async () => undefined,
  };
  return guard;
}

const broken: readonly (readonly [string, string, ConformanceGuard])[] = [
  ['takes any token', 'an older token', mapGuard(String, () => true)],
  ['takes no token twice', 'an older token', mapGuard(String, (token, newest) => token > newest)],
  ['compares without case', 'told apart', mapGuard((name) => name.toLowerCase())],
  ['ignores spaces at the end', 'told apart', mapGuard((name) => name.trimEnd())],
  ['composes accents', 'told apart', mapGuard((name) => name.normalize('NFC'))],
  ['compares by what looks alike', 'told apart', mapGuard((name) => name.normalize('NFKD'))],
  [
    'replaces all characters beyond the first plane by one',
    'told apart',
    mapGuard((name) => name.replaceAll(/\p{So}/gu, '?')),
  ],
  ['cuts names off at 255 characters', 'kept whole', mapGuard((name) => name.slice(0, 255))],
  ['cuts names off at 505 bytes', 'kept whole', mapGuard((name) => Buffer.from(name).subarray(0, 505).toString('hex'))],
];

describe('guardConformance', () => {
  guardConformance(() => mapGuard(String), { framework: { describe, test, afterAll } });

  test.each(broken)('catches a guard that %s', async (_, caughtBy, guard) => {
    const [found, ...others] = guardCases.filter(({ name }) => name.includes(caughtBy));
    expect(found).toBeDefined();
    expect(others.length).toBe(0);
    await expect(found!.run(guard)).rejects.toMatchObject({ code: 'ERR_ASSERTION' });
  });
});
