import { describe, expect, test } from 'vitest';
import type { Command } from '../state-machine/command.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, compare, deleteRange, grant, put, range, txn } from '../testing/requests.ts';
import type { Compare, RequestOp } from './kv-types.ts';

function machineWith(...commands: Command[]): StateMachine {
  const state = new StateMachine();
  applyNext(state, ...commands);
  return state;
}

function succeeds(state: StateMachine, ...compares: Compare[]): boolean {
  const [response] = applyNext(state, txn({ compare: compares })).responses;
  return response?.kind === 'txn' && response.txn.succeeded;
}

describe('comparisons', () => {
  const state = machineWith(grant(7n), put('a', 'm'), put('a', 'm', { lease: 7n }), put('b', 'n'));

  test('compare each target in each way', () => {
    const outcomes = (options: Partial<Compare>): boolean[] =>
      [0, 1, 2, 3].map((result) => succeeds(state, compare('a', { ...options, result })));
    const equal = [true, false, false, false];
    const greater = [false, true, false, true];
    const less = [false, false, true, true];
    expect([2, 1, 3].map((number) => outcomes({ target: 0, number }))).toEqual([equal, greater, less]);
    expect([2, 1, 3].map((number) => outcomes({ target: 1, number }))).toEqual([equal, greater, less]);
    expect([3, 2, 4].map((number) => outcomes({ target: 2, number }))).toEqual([equal, greater, less]);
    expect(['m', 'l', 'mm'].map((value) => outcomes({ target: 3, value }))).toEqual([equal, greater, less]);
    expect([7n, -7n, 8n].map((lease) => outcomes({ target: 4, lease }))).toEqual([equal, greater, less]);
  });

  test('treat the numbers of a missing key as 0, but no comparison of its value holds', () => {
    for (const target of [0, 1, 2, 4]) expect(succeeds(state, compare('x', { target }))).toBe(true);
    expect(succeeds(state, compare('x', { target: 0, number: 1, result: 2 }))).toBe(true);
    for (const result of [0, 1, 2, 3]) expect(succeeds(state, compare('x', { target: 3, result }))).toBe(false);
    expect(succeeds(state, compare('x', { rangeEnd: 'y', target: 2, number: 0 }))).toBe(true);
    const deleted = machineWith(put('a', 'm'), deleteRange('a'), put('b', 'n'));
    for (const target of [0, 1, 2, 4]) expect(succeeds(deleted, compare('a', { target }))).toBe(true);
    expect(succeeds(deleted, compare('a', { target: 3 }))).toBe(false);
    expect(succeeds(deleted, compare('a', { rangeEnd: 'c', target: 3, value: 'n' }))).toBe(true);
  });

  test('hold for a range when they hold for each of its keys', () => {
    expect(succeeds(state, compare('a', { rangeEnd: '\0', target: 3, value: 'l', result: 1 }))).toBe(true);
    expect(succeeds(state, compare('a', { rangeEnd: 'c', target: 3, value: 'm' }))).toBe(false);
    expect(succeeds(state, compare('a', { rangeEnd: 'c', target: 3, value: 'm', result: 1 }))).toBe(false);
  });

  test('must all hold, and an empty list holds', () => {
    expect(succeeds(state)).toBe(true);
    expect(succeeds(state, compare('b', { number: 1 }), compare('a', { number: 2 }))).toBe(true);
    expect(succeeds(state, compare('b', { number: 1 }), compare('a', { number: 9 }))).toBe(false);
  });
});

describe('a transaction', () => {
  test('writes at one revision, and its ranges see what it wrote before', () => {
    const state = machineWith(put('a', '1'));
    const ops: RequestOp[] = [range('a'), put('a', '2'), range('a'), range('a', '', { revision: 2 }), deleteRange('a')];
    const { responses, firstRevision, lastRevision } = applyNext(state, txn({ success: [...ops, range('a')] }));
    expect([firstRevision, lastRevision]).toEqual([3, 3]);
    expect(responses[0]).toMatchObject({
      revision: 3,
      txn: {
        succeeded: true,
        responses: [
          { revision: 2, range: { kvs: [{ value: '1' }] } },
          { revision: 3 },
          { revision: 3, range: { kvs: [{ value: '2', modRevision: 3, version: 2 }] } },
          { revision: 3, range: { kvs: [{ value: '1', modRevision: 2 }] } },
          { revision: 3, deleteRange: { deleted: 1 } },
          { revision: 3, range: { kvs: [], count: 0 } },
        ],
      },
    });
    expect(state.history.eventsAt(3).map((event) => event.type)).toEqual(['put', 'delete']);
  });

  test('makes nested comparisons on the state before its first write', () => {
    const state = machineWith(put('a', '1'));
    const nested = txn({ compare: [compare('b', { target: 1, number: 0 })], success: [put('c', 'free')] });
    applyNext(state, txn({ success: [put('b', '1'), nested] }));
    expect(state.history.eventsAt(3).map(({ kv }) => kv.key)).toEqual(['b', 'c']);
  });

  test('without a write creates no revision', () => {
    const state = machineWith(put('a', '1'));
    const applied = applyNext(state, txn({ success: [deleteRange('x', 'z'), range('a')] }), deleteRange('x'));
    expect(applied.lastRevision).toBe(2);
    expect(applied.responses).toMatchObject([{ revision: 2 }, { revision: 2, deleteRange: { deleted: 0 } }]);
  });

  const faults: [string, RequestOp, string][] = [
    ['a put to an unknown lease', put('z', '', { lease: 99n }), 'LeaseNotFound'],
    ['a put that keeps the value of no key', put('z', '', { ignoreValue: true }), 'KeyNotFound'],
    ['a range in the future', range('a', '', { revision: 9 }), 'FutureRevision'],
    ['a range in the compacted past', range('a', '', { revision: 1 }), 'Compacted'],
    ['a range at a negative revision', range('a', '', { revision: -5 }), 'Compacted'],
    ['an op without a request', { kind: 'empty' }, 'KeyNotFound'],
  ];
  for (const [what, fault, code] of faults) {
    test(`with ${what} on its path leaves nothing applied`, () => {
      const state = machineWith(put('a', '1'), put('a', '2'), { kind: 'compact', revision: 2 });
      const hash = state.hashKv(0);
      const nested = txn({ success: [put('c', ''), fault] });
      const applied = applyNext(state, txn({ success: [put('b', ''), nested, deleteRange('a')] }));
      expect(applied.responses).toEqual([{ kind: 'error', code }]);
      expect(applied.lastRevision).toBe(3);
      expect(state.hashKv(0)).toEqual(hash);
      // The same op on the other branch has no effect.
      const other = applyNext(state, txn({ success: [put('b', '')], failure: [fault] }));
      expect(other.responses[0]?.kind).toBe('txn');
    });
  }

  test('keeps no value or lease of a key that it deletes itself', () => {
    const state = machineWith(put('a', '1'));
    for (const options of [{ ignoreValue: true }, { ignoreLease: true }]) {
      const [doomed, kept] = [deleteRange('\0', '\0'), put('a', '', options)];
      const orders = [
        [doomed, txn({ success: [kept] })],
        [txn({ success: [doomed] }), kept],
        [txn({ success: [doomed] }), txn({ success: [kept] })],
      ];
      for (const success of orders) {
        const refused = applyNext(state, txn({ success }));
        expect(refused.responses).toEqual([{ kind: 'error', code: 'KeyNotFound' }]);
      }
    }
    expect(state.currentRevision).toBe(2);
  });

  test('needs no log entry when it cannot write', () => {
    const state = machineWith(put('a', '1'));
    expect(state.readTxn({ compare: [compare('a', { number: 1 })], success: [range('a')], failure: [] })).toMatchObject(
      {
        succeeded: true,
        responses: [{ kind: 'range', revision: 2, range: { count: 1 } }],
      },
    );
    const hidden = { compare: [], success: [], failure: [txn({ failure: [put('a', '')] })] };
    expect(() => state.readTxn(hidden)).toThrow(/must go through the log/);
    expect(state.readTxn({ compare: [], success: [range('a', '', { revision: 9 })], failure: [] })).toMatchObject({
      code: 'FutureRevision',
    });
  });
});
