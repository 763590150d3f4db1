/** The three functions that node:test (with its `after` as `afterAll`), vitest and jest have in common. */
export interface TestFramework {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: () => Promise<void>, timeoutMs: number): unknown;
  afterAll(body: () => Promise<void>): unknown;
}

export function globalFramework(): TestFramework {
  const { describe, test, afterAll } = globalThis as Partial<TestFramework>;
  if (describe === undefined || test === undefined || afterAll === undefined) {
    throw new TypeError('no global describe, test and afterAll: give them as the option framework');
  }
  return { describe, test, afterAll };
}
