import { describe, expect, test } from 'vitest';
import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import type { Command, CommandResponse } from '../state-machine/command.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, compare, deleteRange, put, range, rangeRequest, txn } from '../testing/requests.ts';
import type { TxnRequest } from './kv-types.ts';
import { defaultTxnLimits } from './txn-limits.ts';

const limits = { maxRows: 10, maxReplyBytes: 1_000, maxComparedBytes: 1_000 };

/** Keys k0 to k5 with values of ten bytes. */
function machine(...first: Command[]): StateMachine {
  const state = new StateMachine();
  for (let i = 0; i < 6; i++) applyNext(state, put(`k${i}`, 'ten bytes.'));
  applyNext(state, ...first);
  return state;
}

function limited(): StateMachine {
  return machine({ kind: 'setTxnLimits', limits });
}

function answer(state: StateMachine, request: Partial<TxnRequest>): CommandResponse | undefined {
  return applyNext(state, txn(request)).responses[0];
}

const tooLarge = { kind: 'error', code: 'RequestTooLarge' };

describe('a transaction within limits', () => {
  test('scans up to the maximum number of keys, for every kind of op', () => {
    const six = range('k', 'l');
    expect(answer(limited(), { success: [six, put('x', '')] })).toMatchObject({ kind: 'txn' });
    expect(answer(limited(), { success: [six, range('k', 'k4'), put('x', '')] })).toMatchObject({ kind: 'txn' });
    for (const more of [
      six,
      range('k', 'l', { countOnly: true }),
      range('k', 'l', { limit: 1 }),
      deleteRange('k', 'l'),
      txn({ success: [range('k', '\0')] }),
    ]) {
      expect(answer(limited(), { success: [six, more, put('x', '')] })).toEqual(tooLarge);
    }
    const compares = [compare('k', { rangeEnd: 'l', result: 1 }), compare('k', { rangeEnd: 'l', result: 1 })];
    expect(answer(limited(), { compare: compares, success: [put('x', '')] })).toEqual(tooLarge);
  });

  test('counts deleted keys that are still held, since they are scanned', () => {
    const state = limited();
    applyNext(state, deleteRange('k', 'l'));
    expect(answer(state, { success: [range('k', 'l'), deleteRange('k', 'l'), put('x', '')] })).toEqual(tooLarge);
    applyNext(state, { kind: 'compact', revision: state.currentRevision }, put('y', ''));
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    while (state.collectGarbage(1));
    expect(answer(state, { success: [range('k', 'l'), deleteRange('k', 'l'), put('x', '')] })).toMatchObject({
      kind: 'txn',
    });
  });

  test('returns up to the maximum number of bytes: of ranges, of deleted keys and of overwritten ones', () => {
    const wide = { ...limits, maxReplyBytes: 40 };
    const one = range('k0');
    const tries: readonly (readonly [TxnRequest['success'], boolean])[] = [
      [[one, one, one, put('x', '')], true],
      [[one, one, one, one, put('x', '')], false],
      [[range('k', 'l'), put('x', '')], false],
      [[range('k', 'l', { keysOnly: true }), put('x', '')], true],
      [[range('k', 'l', { countOnly: true }), put('x', '')], true],
      [[range('k', 'l', { limit: 3 }), put('x', '')], true],
      // The first entry of a lock's queue: sorted, and one of all scanned keys is returned.
      [[range('k', 'l', { limit: 1, sortOrder: 1, sortTarget: 2 }), put('x', '')], true],
      [[deleteRange('k', 'l')], true],
      [[deleteRange('k', 'l', { prevKv: true })], false],
      [[put('k0', '', { prevKv: true }), put('k1', '', { prevKv: true })], true],
      [[put('k0', '', { prevKv: true }), put('k1', '', { prevKv: true }), one, one], false],
    ];
    for (const [success, fits] of tries) {
      const state = machine({ kind: 'setTxnLimits', limits: wide });
      expect(answer(state, { success }), success.map(({ kind }) => kind).join()).toMatchObject(
        fits ? { kind: 'txn' } : tooLarge,
      );
    }
  });

  test('counts its own puts among the scanned keys and the response bytes', () => {
    const puts = [put('k6', 'ten bytes.'), put('k7', 'ten bytes.'), put('x', 'y'.repeat(600))];
    const state = limited();
    expect(answer(state, { success: [...puts, range('k', 'l')] })).toMatchObject({ kind: 'txn' });
    for (const success of [
      // Six existing keys and three puts, scanned twice.
      [put('l', ''), put('m', ''), put('n', ''), range('k', 'l'), range('m', 'n')],
      [put('l', 'y'.repeat(600)), range('l'), range('l')],
      [put('l', 'y'.repeat(600)), range('l', 'm'), range('l', 'm')],
      [put('l', 'y'.repeat(600)), txn({ success: [range('l')] }), range('l')],
    ]) {
      expect(answer(limited(), { success })).toEqual(tooLarge);
    }
    // At an earlier revision the puts do not exist.
    const before = range('l', 'm', { revision: 3 });
    expect(answer(limited(), { success: [put('l', 'y'.repeat(600)), before, before, before] })).toMatchObject({
      kind: 'txn',
    });
  });

  test('compares up to the maximum number of value bytes', () => {
    const sorted = range('k', 'l', { sortTarget: 4, limit: 1, keysOnly: true });
    // Six rows of ten bytes, each compared three times.
    const tight = { maxRows: 1_000, maxReplyBytes: 1_000, maxComparedBytes: 360 };
    const start = (): StateMachine => machine({ kind: 'setTxnLimits', limits: tight });
    expect(answer(start(), { success: [sorted, sorted, put('x', '')] })).toMatchObject({ kind: 'txn' });
    expect(answer(start(), { success: [sorted, sorted, sorted, put('x', '')] })).toEqual(tooLarge);
    const byKey = range('k', 'l', { sortTarget: 3, sortOrder: 2, limit: 1 });
    expect(answer(start(), { success: [byKey, byKey, byKey, put('x', '')] })).toMatchObject({ kind: 'txn' });
    const compares = (count: number): TxnRequest['compare'] =>
      Array.from({ length: count }, () => compare('k', { rangeEnd: 'l', target: 3, result: 3, value: 'ten bytes?' }));
    expect(answer(start(), { compare: compares(6), success: [put('x', '')] })).toMatchObject({ kind: 'txn' });
    expect(answer(start(), { compare: compares(7), success: [put('x', '')] })).toEqual(tooLarge);
  });

  test('changes nothing when it is refused, and is refused alike when it only reads', () => {
    const state = limited();
    const before = state.currentRevision;
    const twice = [range('k', 'l'), range('k', 'l')];
    expect(answer(state, { success: [put('x', ''), ...twice] })).toEqual(tooLarge);
    expect(state.currentRevision).toBe(before);
    const request = { compare: [], success: twice, failure: [] };
    expect(state.readTxn(request)).toEqual(tooLarge);
    expect(state.checkTxnCost(request)).toEqual(tooLarge);
    expect(state.checkTxnCost({ ...request, success: [range('k', 'l')] })).toBeUndefined();
  });

  test('has no limits in apply before an entry sets them, but has limits when proposed', () => {
    const state = machine();
    expect(state.hasTxnLimits).toBe(false);
    const success = Array.from({ length: 20 }, () => range('k', 'l'));
    expect(answer(state, { success: [...success, put('x', '')] })).toMatchObject({ kind: 'txn' });
    expect(state.txnLimits).toEqual(defaultTxnLimits);
    applyNext(state, { kind: 'setTxnLimits', limits });
    expect(answer(state, { success: [...success, put('y', '')] })).toEqual(tooLarge);
  });

  test('ignores limits that do not limit', () => {
    const state = limited();
    applyNext(state, { kind: 'setTxnLimits', limits: { ...limits, maxRows: 0 } });
    expect(state.txnLimits).toEqual(limits);
  });

  test('keeps its limits in a snapshot; without limits an earlier version can read the snapshot', () => {
    for (const [state, format] of [
      [machine(), 1],
      [limited(), 2],
    ] as const) {
      const chunks = [...state.snapshot()];
      expect(chunks[0]?.[8]).toBe(format);
      const reader = new SnapshotReader();
      for (const chunk of chunks) reader.push(chunk);
      const restored = reader.finish();
      expect([restored.hasTxnLimits, restored.txnLimits]).toEqual([state.hasTxnLimits, state.txnLimits]);
    }
  });
});

describe('the replay of a transaction from before the limits', () => {
  test('builds no results: a transaction that took 12 s and all memory costs only its writes', () => {
    const state = new StateMachine();
    for (let i = 0; i < 20; i++) {
      applyNext(state, ...Array.from({ length: 1_000 }, (_, j) => put(`k${i * 1_000 + j}`, '1')));
    }
    const ranges = Array.from({ length: 1_920 }, () => range('k', 'l', { keysOnly: true }));
    const command = txn({ success: [...ranges, put('x', '')] });
    const entry = { index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [command] };
    const { responses, lastRevision } = state.apply(entry, () => false);
    expect(responses).toEqual([{ kind: 'txn', revision: lastRevision, txn: { succeeded: true, responses: [] } }]);
    // 38 million rows in all: as objects they would exhaust V8's heap.
    expect(state.range(rangeRequest('x'))).toMatchObject({ count: 1 });
  });
});
