import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';

const key = fc.constantFrom('a', 'b', 'c');
const change = fc.record({ key, put: fc.boolean() });

test('unchangedBefore finds the next change of a small range exactly, before and after compaction', () => {
  fc.assert(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 40 }),
      fc.nat(40),
      fc.nat(40),
      fc.tuple(key, fc.constantFrom('', '\0', 'b', 'c')),
      (changes, compactAt, fromOffset, [start, rangeEnd]) => {
        const state = new StateMachine();
        const { history } = state;
        let index = 0;
        const apply = (command: Parameters<StateMachine['apply']>[0]['commands'][number]): void => {
          index += 1;
          state.apply({ index, epoch: 0, timeMs: 0, commands: [command] });
        };
        for (const { key: at, put } of changes) {
          if (put) {
            apply({
              kind: 'put',
              put: { key: at, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
            });
          } else apply({ kind: 'deleteRange', deleteRange: { key: at, rangeEnd: '', prevKv: false } });
        }
        const compactRevision = Math.min(compactAt, history.currentRevision);
        if (compactRevision > 0) apply({ kind: 'compact', revision: compactRevision });
        state.collectGarbage(1000);
        const from = Math.min(Math.max(history.compactRevision, 1) + fromOffset, history.currentRevision);
        const inRange = (at: string): boolean =>
          rangeEnd === '' ? at === start : at >= start && (rangeEnd === '\0' || at < rangeEnd);
        let expected = Number.POSITIVE_INFINITY;
        for (let revision = history.currentRevision; revision >= from; revision--) {
          if (history.eventsAt(revision).some(({ kv }) => inRange(kv.key))) expected = revision;
        }
        expect(history.unchangedBefore(start, rangeEnd, from)).toBe(expected);
      },
    ),
    { numRuns: 500 },
  );
});

test('a range with many keys is not searched: the answer is the position of the reader', () => {
  const state = new StateMachine();
  for (let n = 1; n <= 300; n++) {
    const put = { key: `a${n}`, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    state.apply({ index: n, epoch: 0, timeMs: 0, commands: [{ kind: 'put', put }] });
  }
  const last = state.history.currentRevision;
  expect(state.history.unchangedBefore('a', 'b', last + 1)).toBe(last + 1);
  expect(state.history.unchangedBefore('b', '\0', 5)).toBe(Number.POSITIVE_INFINITY);
});
