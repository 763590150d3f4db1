import assert from 'node:assert/strict';
import { ConformanceLab } from './conformance/conformance-lab.ts';
import type { ConformanceCase } from './conformance/conformance-lab.ts';
import type { ConformanceStore, Hint, StoreHook } from './conformance/conformance-store.ts';
import { endingCases } from './conformance/ending-cases.ts';
import { brokenWatchCases, hintCases, watchCases } from './conformance/hint-cases.ts';
import { lifeCases } from './conformance/life-cases.ts';
import { lineCases } from './conformance/line-cases.ts';
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
 * Registers the contract of `LeaseBackend` as tests, for whoever writes a backend. `makeStore` makes a store that
 * nobody else uses; it is called twice, since one test closes everything. Names of tests cite the complaints about
 * other libraries that they keep from coming back.
 */
export function backendConformance(
  makeStore: () => ConformanceStore | Promise<ConformanceStore>,
  options: ConformanceOptions = {},
): void {
  const { describe, test, afterAll } = options.framework ?? globalFramework();
  describe('the contract of LeaseBackend', () => {
    let opening: Promise<ConformanceLab> | undefined;
    const open = async (): Promise<ConformanceLab> => ConformanceLab.over(await makeStore(), options);
    const cases = conformanceCases(options);
    const waiting = new Map<ConformanceCase, Promise<void>>();
    for (const one of cases) {
      const run = async (): Promise<void> => {
        const lab = await (opening ??= open());
        if (one.isWaiting && waiting.size === 0) beginWaiting(cases, lab, waiting);
        // What is not one of them has the store to itself.
        await Promise.allSettled(waiting.values());
        await (waiting.get(one) ?? one.run(lab));
      };
      test(one.name, run, caseTimeoutMs);
    }
    test(
      closeCase.name,
      async () => {
        const lab = await open();
        await closeCase.run(lab).finally(() => lab.dispose());
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
  lab: ConformanceLab,
  runs: Map<ConformanceCase, Promise<void>>,
): void {
  for (const one of cases.filter(({ isWaiting }) => isWaiting)) runs.set(one, one.run(lab));
}

/** All but the one that closes what it uses. Those that break something come last. */
export function conformanceCases({ hints = [], hooks = [] }: ConformanceOptions): readonly ConformanceCase[] {
  const canBreakWatches = hooks.includes('killConnections') && hints.includes('came');
  return [
    ...callCases,
    ...lineCases,
    ...lifeCases,
    ...endingCases,
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
    run: (lab) => {
      assert.ok(lab.store[hook] !== undefined, `the store has the hook ${hook} and no method of that name`);
      return run(lab);
    },
  };
}
