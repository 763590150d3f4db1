import assert from 'node:assert/strict';
import { ConformanceFixture } from './conformance/conformance-fixture.ts';
import type { ConformanceCase } from './conformance/conformance-fixture.ts';
import type { ConformanceStore, Hint, StoreHook } from './conformance/conformance-store.ts';
import { leaveAndUpdateCases } from './conformance/leave-and-update-cases.ts';
import { brokenWatchCases, hintCases, watchCases } from './conformance/hint-cases.ts';
import { lifetimeCases } from './conformance/lifetime-cases.ts';
import { queueCases } from './conformance/queue-cases.ts';
import { raceCases } from './conformance/race-cases.ts';
import { callCases, closeCase, hookCases } from './conformance/store-cases.ts';
import { globalFramework } from './test-framework.ts';
import type { TestFramework } from './test-framework.ts';

/** A case waits that long at the longest; frameworks that have shorter limits of their own are told. */
const caseTimeoutMs = 120_000;

export interface ConformanceOptions {
  /** Those of the globals `describe`, `test` and `afterAll` when it is left out. */
  readonly framework?: TestFramework;
  /** What `watch` hints of within seconds, when another backend did it. Each one adds its tests. */
  readonly hints?: readonly Hint[];
  /** What the store can do. Each one adds its tests, and the store has the method of that name. */
  readonly hooks?: readonly StoreHook[];
  /** How often the races are run: `few` for tests that run all day long, else `all`. */
  readonly rounds?: 'all' | 'few';
  /** What the suite does at random follows from it, and a failure names it. A fresh one when it is left out. */
  readonly seed?: number;
}

/**
 * Registers the contract of `LeaseBackend` as tests, for authors of backends. `makeStore` makes a store that
 * no other test uses. It is called twice, because one test closes everything. Test names cite the known issues of
 * other libraries that they keep from coming back.
 */
export function backendConformance(
  makeStore: () => ConformanceStore | Promise<ConformanceStore>,
  options: ConformanceOptions = {},
): void {
  const { describe, test, afterAll } = options.framework ?? globalFramework();
  describe('the contract of LeaseBackend', () => {
    let opening: Promise<ConformanceFixture> | undefined;
    const open = async (): Promise<ConformanceFixture> => ConformanceFixture.over(await makeStore(), options);
    const cases = conformanceCases(options);
    const waiting = new Map<ConformanceCase, Promise<void>>();
    for (const one of cases) {
      const run = async (): Promise<void> => {
        const fixture = await (opening ??= open());
        if (one.isWaiting && waiting.size === 0) beginWaiting(cases, fixture, waiting);
        // What is not one of them has the store to itself.
        await Promise.allSettled(waiting.values());
        await (waiting.get(one) ?? one.run(fixture));
      };
      test(one.name, run, caseTimeoutMs);
    }
    test(
      closeCase.name,
      async () => {
        const fixture = await open();
        await closeCase.run(fixture).finally(() => fixture.dispose());
      },
      caseTimeoutMs,
    );
    afterAll(async () => {
      await Promise.allSettled(waiting.values());
      // When the store could not even be opened every test has said so.
      await (await opening?.catch(() => undefined))?.dispose();
    });
  });
}

/** They spend their time on waiting for lives to end: all of them together take as long as the longest. */
function beginWaiting(
  cases: readonly ConformanceCase[],
  fixture: ConformanceFixture,
  runs: Map<ConformanceCase, Promise<void>>,
): void {
  for (const one of cases.filter(({ isWaiting }) => isWaiting)) runs.set(one, one.run(fixture));
}

/** All but the one that closes what it uses. Those that break something come last. */
export function conformanceCases({ hints = [], hooks = [] }: ConformanceOptions): readonly ConformanceCase[] {
  const canBreakWatches = hooks.includes('killConnections') && hints.includes('came');
  return [
    ...callCases,
    ...queueCases,
    ...lifetimeCases,
    ...leaveAndUpdateCases,
    ...watchCases,
    ...hints.flatMap((hint) => hintCases[hint]),
    ...raceCases,
    ...hooks.flatMap((hook) => hookCases[hook].map((one) => withHook(hook, one))),
    ...(canBreakWatches ? brokenWatchCases : []),
  ];
}

function withHook(hook: StoreHook, { name, run }: ConformanceCase): ConformanceCase {
  return {
    name,
    run: (fixture) => {
      assert.ok(fixture.store[hook] !== undefined, `the store has the hook ${hook} and no method of that name`);
      return run(fixture);
    },
  };
}
