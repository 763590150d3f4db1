import { appendCases } from './append-cases.ts';
import type { EngineCase } from './engine-case.ts';
import { followCases } from './follow-cases.ts';
import { snapshotCases } from './snapshot-cases.ts';

/**
 * Every rule of the contract in log-engine.ts as a case that any engine must pass. The cases do not depend on a test
 * runner: the tests of an engine loop over them, with a new log for each.
 */
export function engineConformance(engine: { readonly isDurable: boolean }): readonly EngineCase[] {
  const cases = [...appendCases, ...followCases, ...snapshotCases];
  return cases.filter((one) => engine.isDurable || one.needsDurability === undefined);
}
