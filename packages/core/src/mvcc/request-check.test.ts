import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, compare, deleteRange, put, putRequest, range, rangeRequest, txn } from '../testing/requests.ts';
import type { RequestOp, TxnRequest } from './kv-types.ts';
import { checkCompact, checkDeleteRange, checkPut, checkRange, checkTxn } from './request-check.ts';

const refused = (code: string): unknown => ({ kind: 'error', code });

function request(parts: Partial<TxnRequest>): TxnRequest {
  return { compare: [], success: [], failure: [], ...parts };
}

function many(count: number): RequestOp[] {
  return Array.from({ length: count }, (_, i) => put(`k${i}`, 'v'));
}

describe('checkRange', () => {
  test('requires a key', () => {
    expect(checkRange(rangeRequest(''))).toEqual(refused('EmptyKey'));
    expect(checkRange(rangeRequest('\0', '\0'))).toBeUndefined();
  });

  test('requires a known order and target', () => {
    for (const sortOrder of [-1, 3, 1.5]) {
      expect(checkRange(rangeRequest('a', '', { sortOrder }))).toEqual(refused('InvalidSortOption'));
    }
    for (const sortTarget of [-1, 5]) {
      expect(checkRange(rangeRequest('a', '', { sortTarget }))).toEqual(refused('InvalidSortOption'));
    }
    expect(checkRange(rangeRequest('a', '', { sortOrder: 2, sortTarget: 4 }))).toBeUndefined();
  });
});

describe('checkCompact', () => {
  test('treats a negative revision as compacted, in every state', () => {
    for (const revision of [Number.MIN_SAFE_INTEGER, -2, -1]) {
      expect(checkCompact(revision)).toEqual(refused('Compacted'));
    }
    for (const revision of [0, 1, Number.MAX_SAFE_INTEGER]) expect(checkCompact(revision)).toBeUndefined();
  });

  test('refuses nothing that a new state machine accepts', () => {
    for (const revision of [-2, -1, 0, 1]) {
      const state = new StateMachine();
      const [response] = applyNext(state, { kind: 'compact', revision }).responses;
      expect(checkCompact(revision)?.code).toBe(response?.kind === 'error' ? response.code : undefined);
    }
  });
});

describe('checkPut and checkDeleteRange', () => {
  test('require a key', () => {
    expect(checkPut(putRequest('', 'v'))).toEqual(refused('EmptyKey'));
    expect(checkDeleteRange({ key: '', rangeEnd: '\0', prevKv: false })).toEqual(refused('EmptyKey'));
    expect(checkDeleteRange({ key: 'a', rangeEnd: '', prevKv: false })).toBeUndefined();
  });

  test('refuse a value or lease that a put also ignores', () => {
    expect(checkPut(putRequest('a', 'v', { ignoreValue: true }))).toEqual(refused('ValueProvided'));
    expect(checkPut(putRequest('a', '', { ignoreLease: true, lease: 1n }))).toEqual(refused('LeaseProvided'));
    expect(checkPut(putRequest('a', '', { ignoreValue: true, ignoreLease: true }))).toBeUndefined();
  });
});

describe('checkTxn', () => {
  test('bounds each of the three lists', () => {
    expect(checkTxn(request({ success: many(4), failure: many(4) }), 4)).toBeUndefined();
    expect(checkTxn(request({ success: many(5) }), 4)).toEqual(refused('TooManyOps'));
    expect(checkTxn(request({ failure: many(5) }), 4)).toEqual(refused('TooManyOps'));
    expect(checkTxn(request({ compare: Array.from({ length: 5 }, () => compare('a')) }), 4)).toEqual(
      refused('TooManyOps'),
    );
  });

  test('gives a nested transaction the ops that its parent left', () => {
    const nested = (own: number): RequestOp => txn({ success: many(own) });
    expect(checkTxn(request({ success: [nested(3)] }), 4)).toBeUndefined();
    expect(checkTxn(request({ success: [nested(4)] }), 4)).toEqual(refused('TooManyOps'));
    // Each sibling has the same remaining number.
    expect(
      checkTxn(request({ success: [txn({ success: [put('a', '')] }), txn({ success: [put('b', '')] })] }), 3),
    ).toBe(undefined);
  });

  test('bounds the total too, so that a small request cannot contain very many ops', () => {
    let ops: RequestOp[] = [range('a')];
    for (let depth = 0; depth < 40; depth++) ops = [txn({ success: ops }), txn({ failure: ops })];
    expect(checkTxn(request({ success: ops }), 128)).toEqual(refused('TooManyOps'));
  });

  test('checks every op of both branches, nested ones too', () => {
    const bad: [RequestOp, string][] = [
      [put('', 'v'), 'EmptyKey'],
      [range('a', '', { sortOrder: 7 }), 'InvalidSortOption'],
      [deleteRange(''), 'EmptyKey'],
      [{ kind: 'empty' }, 'KeyNotFound'],
      [txn({ compare: [compare('')] }), 'EmptyKey'],
    ];
    for (const [op, code] of bad) {
      expect(checkTxn(request({ success: [op] }), 128)).toEqual(refused(code));
      expect(checkTxn(request({ failure: [op] }), 128)).toEqual(refused(code));
      expect(checkTxn(request({ success: [txn({ failure: [op] })] }), 128)).toEqual(refused(code));
    }
  });
});

describe('checkTxn on keys written twice', () => {
  const duplicate: [string, RequestOp[]][] = [
    ['two puts', [put('a', '1'), put('a', '2')]],
    ['a put and its delete', [put('a', '1'), deleteRange('a')]],
    ['a delete before the put', [deleteRange('a'), put('a', '1')]],
    ['a put within a deleted range', [put('b', '1'), deleteRange('a', 'c')]],
    ['a put beside a nested put', [put('a', '1'), txn({ failure: [put('a', '2')] })]],
    ['a nested put within a deleted range', [deleteRange('a', 'c'), txn({ success: [put('b', '1')] })]],
    ['a put within a range deleted by a nested one', [txn({ success: [deleteRange('a', 'c')] }), put('b', '1')]],
    ['puts of two siblings', [txn({ success: [put('a', '1')] }), txn({ failure: [put('a', '2')] })]],
    ['a put after the delete in a failing sibling', [txn({ failure: [deleteRange('a')] }), put('a', '')]],
    ['a put after the delete of a sibling', [txn({ success: [deleteRange('a')] }), txn({ success: [put('a', '')] })]],
    ['two deeply nested puts', [txn({ success: [txn({ success: [put('a', '1'), put('a', '2')] })] })]],
  ];
  for (const [what, ops] of duplicate) {
    test(`refuses ${what}`, () => {
      expect(checkTxn(request({ success: ops }), 128)).toEqual(refused('DuplicateKey'));
      expect(checkTxn(request({ failure: ops }), 128)).toEqual(refused('DuplicateKey'));
    });
  }

  const allowed: [string, RequestOp[]][] = [
    ['two deletes that overlap', [deleteRange('a', 'c'), deleteRange('b')]],
    ['a put at the end of a deleted range', [deleteRange('a', 'c'), put('c', '')]],
    ['the same put in both branches of a nested one', [txn({ success: [put('a', '')], failure: [put('a', '')] })]],
    ['a put and ranges over it', [put('a', ''), range('a'), range('a', '\0')]],
    // etcd's quirks, which clients may rely on.
    ['a put and a delete of everything from its key on', [put('b', ''), deleteRange('a', '\0')]],
    ['a put before the delete of a sibling', [txn({ success: [put('a', '')] }), txn({ success: [deleteRange('a')] })]],
  ];
  for (const [what, ops] of allowed) {
    test(`accepts ${what}`, () => {
      expect(checkTxn(request({ success: ops }), 128)).toBeUndefined();
    });
  }

  test('accepts a write of the same key in both branches', () => {
    expect(checkTxn(request({ success: [put('a', '')], failure: [put('a', '')] }), 128)).toBeUndefined();
  });
});
