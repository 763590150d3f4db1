import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyModel, type KeyInput, type KeyOutput } from './key-model.ts';
import { checkLinearizable } from './linearizability.ts';
import type { Operation } from './operation.ts';

type KeyOperation = Operation<KeyInput, KeyOutput>;

const verdictOf = (history: readonly KeyOperation[]): string => checkLinearizable(keyModel, history).kind;

const known = (calledMs: number, returnedMs: number, input: KeyInput, output: KeyOutput): KeyOperation => {
  return { client: 0, input, outcome: { kind: 'known', output }, calledMs, returnedMs };
};
const get = (calledMs: number, returnedMs: number, seen: string | null): KeyOperation =>
  known(calledMs, returnedMs, { kind: 'get' }, { changed: false, seen });
const put = (calledMs: number, returnedMs: number, value: string, seen?: string | null): KeyOperation =>
  known(calledMs, returnedMs, { kind: 'put', value }, { changed: true, seen });
const remove = (calledMs: number, returnedMs: number, changed: boolean): KeyOperation =>
  known(calledMs, returnedMs, { kind: 'delete' }, { changed, seen: undefined });
const swap = (calledMs: number, returnedMs: number, expected: string, value: string, changed: boolean): KeyOperation =>
  known(calledMs, returnedMs, { kind: 'swap', expected, value }, { changed, seen: undefined });
const lost = (calledMs: number, input: KeyInput, kind: 'unknown' | 'failed' = 'unknown'): KeyOperation => {
  return { client: 0, input, outcome: { kind }, calledMs, returnedMs: calledMs };
};
const putA: KeyInput = { kind: 'put', value: 'a' };

describe('a history is accepted in which', () => {
  test.each<[string, KeyOperation[]]>([
    ['nothing happens', []],
    ['calls follow each other', [put(0, 1, 'a'), get(2, 3, 'a'), remove(4, 5, true), get(6, 7, null)]],
    ['a read sees a write that overlaps with it', [put(0, 10, 'a'), get(1, 2, 'a')]],
    ['a read misses a write that overlaps with it', [put(0, 10, 'a'), get(1, 2, null), get(11, 12, 'a')]],
    ['overlapping writes take effect in the other order', [put(0, 10, 'a'), put(1, 9, 'b'), get(11, 12, 'a')]],
    ['calls that touch in time count as overlapping', [put(0, 5, 'a'), get(5, 6, null)]],
    [
      'one of two swaps wins',
      [put(0, 1, 'a'), swap(2, 9, 'a', 'b', false), swap(3, 8, 'a', 'c', true), get(10, 11, 'c')],
    ],
    ['an unknown write took effect', [lost(0, putA), get(1, 2, 'a')]],
    ['an unknown write took effect much later', [lost(0, putA), put(1, 2, 'b'), get(3, 4, 'b'), get(5, 6, 'a')]],
    ['an unknown write took no effect', [put(0, 1, 'b'), lost(2, putA), get(3, 4, 'b')]],
    ['an unknown delete took effect', [put(0, 1, 'b'), lost(2, { kind: 'delete' }), remove(3, 4, false)]],
    [
      'an unknown swap took effect',
      [put(0, 1, 'b'), lost(2, { kind: 'swap', expected: 'b', value: 'c' }), get(3, 4, 'c')],
    ],
    ['a failed write is not seen', [put(0, 1, 'b'), lost(2, putA, 'failed'), get(3, 4, 'b')]],
    ['a write returns the previous value', [put(0, 9, 'a', 'b'), put(1, 8, 'b', null), get(10, 11, 'a')]],
  ])('%s', (_, history) => {
    expect(verdictOf(history)).toBe('linearizable');
  });
});

describe('a history is rejected that has', () => {
  test.each<[string, KeyOperation[]]>([
    ['a stale read', [put(0, 1, 'a'), put(2, 3, 'b'), get(4, 5, 'a')]],
    ['a lost write', [put(0, 1, 'a'), get(2, 3, null)]],
    ['a write that took effect twice', [put(0, 1, 'a'), put(2, 3, 'b'), get(4, 5, 'b'), get(6, 7, 'a')]],
    ['an unknown write twice', [lost(0, putA), get(1, 2, 'a'), put(3, 4, 'b'), get(5, 6, 'b'), get(7, 8, 'a')]],
    ['writes in another order than theirs', [put(0, 1, 'a'), put(2, 3, 'b'), put(4, 5, 'c', 'a')]],
    ['two orders for two readers', [put(0, 9, 'a'), put(0, 9, 'b'), get(1, 2, 'a'), get(3, 4, 'b'), get(5, 6, 'a')]],
    ['a read from the future', [get(0, 1, 'a'), put(2, 3, 'a')]],
    ['an unknown write before its beginning', [get(0, 1, 'a'), lost(2, putA)]],
    ['a failed write that is read', [lost(0, putA, 'failed'), get(1, 2, 'a')]],
    ['a value without a write', [put(0, 1, 'a'), get(2, 3, 'x')]],
    ['an unknown write that is read, then unread', [put(0, 1, 'b'), lost(2, putA), get(3, 4, 'a'), get(5, 6, 'b')]],
    ['a delete of nothing that deleted', [remove(0, 1, true)]],
    ['a delete that missed an existing key', [put(0, 1, 'a'), remove(2, 3, false)]],
    ['two successful swaps', [put(0, 1, 'a'), swap(2, 9, 'a', 'b', true), swap(3, 8, 'a', 'c', true)]],
    ['a swap that failed without a conflict', [put(0, 1, 'a'), swap(2, 3, 'a', 'b', false), get(4, 5, 'a')]],
  ])('%s', (_, history) => {
    expect(verdictOf(history)).toBe('violation');
  });
});

test('a violation is explained by the calls at which the order ends', () => {
  const verdict = checkLinearizable(keyModel, [put(0, 1, 'a'), put(2, 3, 'b'), get(4, 5, 'a')]);
  expect(verdict).toMatchObject({ kind: 'violation', explanation: expect.stringContaining('2 of 3 calls') });
  expect(verdict).toMatchObject({ explanation: expect.stringContaining('4.00..5.00 ms: {"kind":"get"}') });
});

test('a search that takes too long reports that', () => {
  const history = Array.from({ length: 30 }, (_, at) => put(at / 100, 10, `${at}`));
  expect(checkLinearizable(keyModel, [...history, get(11, 12, 'x')], 1_000).kind).toBe('undecided');
});

/** A client's request; its place among the others; how long before and after it the call began and ended. */
interface Plan {
  readonly choice: number;
  readonly value: number;
  readonly before: number;
  readonly after: number;
  readonly isLost: boolean;
  readonly tookEffect: boolean;
  readonly tellsBefore: boolean;
}

const planOf = (lostWeight: number): fc.Arbitrary<Plan> =>
  fc.record({
    choice: fc.nat(9),
    value: fc.nat(2),
    before: fc.nat(40),
    after: fc.nat(40),
    isLost: fc.nat(99).map((roll) => roll < lostWeight),
    tookEffect: fc.boolean(),
    tellsBefore: fc.boolean(),
  });

/** The history of a sequential object, recorded by clients whose calls overlap. Linearizable by construction. */
function historyOf(plans: readonly Plan[]): KeyOperation[] {
  let state: string | null = null;
  return plans.map((plan, at) => {
    const input = inputOf(plan, at);
    // Effects are 10 apart: up to 8 others lie within a call.
    const [calledMs, returnedMs] = [at * 10 - plan.before, at * 10 + plan.after];
    const before: string | null = state;
    const changed = changes(input, before);
    if (changed && (!plan.isLost || plan.tookEffect))
      state = input.kind === 'delete' || input.kind === 'get' ? null : input.value;
    if (plan.isLost) return lost(calledMs, input);
    return known(calledMs, returnedMs, input, {
      changed,
      seen: input.kind === 'get' || plan.tellsBefore ? before : undefined,
    });
  });
}

function inputOf({ choice, value }: Plan, at: number): KeyInput {
  if (choice < 4) return { kind: 'get' };
  if (choice < 7) return { kind: 'put', value: `${value}-${at % 3}` };
  if (choice < 8) return { kind: 'delete' };
  return { kind: 'swap', expected: value === 0 ? undefined : `${value}-${at % 3}`, value: `${value}` };
}

function changes(input: KeyInput, held: string | null): boolean {
  if (input.kind === 'get') return false;
  if (input.kind === 'put') return true;
  return input.kind === 'delete' ? held !== null : held === (input.expected ?? null);
}

/** Tries every order of every choice of the unknown calls: for a handful of calls. */
function isLinearizableByForce(history: readonly KeyOperation[], state = keyModel.initial): boolean {
  const open = history.filter(({ outcome }) => outcome.kind !== 'failed');
  if (open.every(({ outcome }) => outcome.kind === 'unknown')) return true;
  const endMs = Math.min(...open.map(({ outcome, returnedMs }) => (outcome.kind === 'known' ? returnedMs : Infinity)));
  return open.some((operation) => {
    if (operation.calledMs > endMs) return false;
    const { outcome, input } = operation;
    const next = keyModel.step(state, input, outcome.kind === 'known' ? outcome.output : undefined);
    return (
      next !== undefined &&
      isLinearizableByForce(
        open.filter((other) => other !== operation),
        next,
      )
    );
  });
}

describe('the search', () => {
  test('accepts the history of a sequential object with overlapping and unanswered calls', () => {
    fc.assert(
      fc.property(fc.array(planOf(5), { maxLength: 100 }), (plans) => {
        expect(verdictOf(historyOf(plans))).toBe('linearizable');
      }),
      { numRuns: 300 },
    );
  });

  test('agrees with an exhaustive search on small histories with one changed answer', () => {
    let rejected = 0;
    fc.assert(
      fc.property(fc.array(planOf(25), { minLength: 1, maxLength: 6 }), fc.nat(), fc.nat(3), (plans, which, how) => {
        const history = historyOf(plans);
        const at = which % history.length;
        history[at] = mutated(history[at] as KeyOperation, how);
        const expected = isLinearizableByForce(history);
        if (!expected) rejected += 1;
        expect(verdictOf(history)).toBe(expected ? 'linearizable' : 'violation');
      }),
      { numRuns: 2_000 },
    );
    expect(rejected).toBeGreaterThan(200);
  });

  // A rejection has to try each unknown call in each place, alone and with the others: many of them take too long.
  test('rejects long histories with one old value in a read, and up to three unanswered calls', () => {
    const longPlans = fc.array(planOf(0), { minLength: 90, maxLength: 120 });
    fc.assert(
      fc.property(longPlans, fc.array(fc.nat(119), { maxLength: 3 }), (plans, lostAt) => {
        const history = historyOf(plans.map((plan, at) => (lostAt.includes(at) ? { ...plan, isLost: true } : plan)));
        // Behind every call above: a value written once, overwritten, and read again.
        const [begin, end] = [10_000, 20_000];
        const more = [put(begin, begin + 1, 'once'), put(begin + 2, begin + 3, 'then'), get(end, end + 1, 'once')];
        expect(verdictOf([...history, ...more])).toBe('violation');
      }),
      { numRuns: 30 },
    );
  });
});

/** Another answer than the original one. */
function mutated(operation: KeyOperation, how: number): KeyOperation {
  const { outcome } = operation;
  if (outcome.kind !== 'known') return { ...operation, outcome: { kind: 'failed' } };
  const { changed } = outcome.output;
  const seen = [null, '1', '0-1', '2-2'][how] ?? null;
  if (operation.input.kind === 'get') return { ...operation, outcome: { kind: 'known', output: { changed, seen } } };
  if (how === 0) return { ...operation, outcome: { kind: 'unknown' } };
  return {
    ...operation,
    outcome: { kind: 'known', output: { changed: !changed || operation.input.kind === 'put', seen } },
  };
}
