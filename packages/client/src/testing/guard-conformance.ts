import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Hold } from '../leases/hold.ts';
import { globalFramework } from './test-framework.ts';
import type { TestFramework } from './test-framework.ts';
import { longNames, similarNames } from './conformance/similar-names.ts';

/** What `LeaseManager` takes as the name of a lease on every backend. */
const longestNameBytes = 506;
const caseTimeoutMs = 120_000;

/** A place that refuses writes with old tokens: a table of `fenceStatements`, or one of yours. */
export interface ConformanceGuard {
  /** A guarded write under this hold: whether it was taken. Rejects for everything else than an old token. */
  write(hold: Pick<Hold, 'name' | 'fencingToken'>): Promise<boolean>;
  dispose(): Promise<void>;
}

export interface GuardConformanceOptions {
  /** Those of the globals `describe`, `test` and `afterAll` when it is left out. */
  readonly framework?: TestFramework;
}

interface GuardCase {
  readonly name: string;
  run(guard: ConformanceGuard): Promise<void>;
}

/** Registers the contract of a guard as tests, for authors of guards. */
export function guardConformance(
  makeGuard: () => ConformanceGuard | Promise<ConformanceGuard>,
  options: GuardConformanceOptions = {},
): void {
  const { describe, test, afterAll } = options.framework ?? globalFramework();
  describe('the contract of a guard', () => {
    let opening: Promise<ConformanceGuard> | undefined;
    const open = async (): Promise<ConformanceGuard> => await makeGuard();
    for (const { name, run } of guardCases) {
      test(name, async () => run(await (opening ??= open())), caseTimeoutMs);
    }
    // When it could not even be opened every test has said so.
    afterAll(async () => (await opening?.catch(() => undefined))?.dispose());
  });
}

export const guardCases: readonly GuardCase[] = [
  {
    name: 'an older token than the newest is refused permanently, and the newest is taken again and again',
    async run(guard) {
      const name = `job ${randomUUID()}`;
      const write = (fencingToken: bigint): Promise<boolean> => guard.write({ name, fencingToken });
      const answers: boolean[] = [];
      for (const token of [2n, 2n, 1n, 7n, 2n, 7n, 6n, 2n ** 62n, 7n, 2n ** 62n]) answers.push(await write(token));
      assert.deepEqual(answers, [true, true, false, true, false, true, false, true, false, true]);
    },
  },
  {
    name: 'names are told apart by their bytes: case, spaces at the end, accents, width, emoji',
    run: (guard) => areApart(guard, similarNames(`Job ${randomUUID()}`)),
  },
  {
    name: 'names of 506 bytes are kept whole, in any script',
    run: (guard) => areApart(guard, longNames(`${randomUUID()} `, longestNameBytes)),
  },
];

/** With tokens that fall from name to name: where two names are one, the second is refused. */
async function areApart(guard: ConformanceGuard, names: readonly string[]): Promise<void> {
  const highest = 1_000n;
  const holds = names.map((name, at) => ({ name, fencingToken: highest - 2n * BigInt(at) }));
  for (const turn of ['first', 'second']) {
    for (const hold of holds) {
      assert.equal(await guard.write(hold), true, `the ${turn} write under ${JSON.stringify(hold.name)} was refused`);
    }
  }
  for (const { name, fencingToken } of holds) {
    const isTaken = await guard.write({ name, fencingToken: fencingToken - 1n });
    assert.equal(isTaken, false, `an old token of ${JSON.stringify(name)} was taken`);
  }
}
