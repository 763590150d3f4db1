import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, deleteRange, put, rangeRequest } from '../testing/requests.ts';
import type { RangeRequest } from './kv-types.ts';

/** a..d at revisions 2..5; b again at 6 (so its version is 2); e put at 7 and deleted at 8. */
function machine(): StateMachine {
  const state = new StateMachine();
  applyNext(state, put('a', '4'), put('b', '3'), put('c', '2'), put('d', '1'));
  applyNext(state, put('b', '5'), put('e', '0'), deleteRange('e'));
  return state;
}

function read(key: string, rangeEnd = '', options: Partial<RangeRequest> = {}): { keys: string; rest: unknown } {
  const result = machine().range(rangeRequest(key, rangeEnd, options));
  if ('kind' in result) return { keys: '', rest: result.code };
  return { keys: result.kvs.map((kv) => kv.key).join(''), rest: { more: result.more, count: result.count } };
}

describe('a range', () => {
  test('is one key, an interval, everything from a key on, or nothing', () => {
    expect(read('b').keys).toBe('b');
    expect(read('e').keys).toBe('');
    expect(read('b', 'd').keys).toBe('bc');
    expect(read('b', '\0').keys).toBe('bcd');
    expect(read('\0', '\0').keys).toBe('abcd');
    expect(read('c', 'c')).toEqual({ keys: '', rest: { more: false, count: 0 } });
    expect(read('c', 'b').keys).toBe('');
    expect(read('x', '\0').keys).toBe('');
  });

  test('counts every key, also beyond the limit', () => {
    expect(read('a', '\0', { limit: 2 })).toEqual({ keys: 'ab', rest: { more: true, count: 4 } });
    expect(read('a', '\0', { limit: 4 })).toEqual({ keys: 'abcd', rest: { more: false, count: 4 } });
    expect(read('a', '\0', { limit: -1 }).keys).toBe('abcd');
    expect(read('a', '\0', { limit: 1, countOnly: true })).toEqual({ keys: '', rest: { more: false, count: 4 } });
  });

  test('filters by revision before the limit, and counts the filtered keys', () => {
    expect(read('a', '\0', { minModRevision: 4, limit: 2 })).toEqual({ keys: 'bc', rest: { more: true, count: 4 } });
    expect(read('a', '\0', { maxModRevision: 3 })).toEqual({ keys: 'a', rest: { more: false, count: 4 } });
    expect(read('a', '\0', { minCreateRevision: 3, maxCreateRevision: 4 }).keys).toBe('bc');
  });

  test('sorts by every target, up and down', () => {
    const sorted = (sortTarget: number, sortOrder: number): string => read('a', '\0', { sortTarget, sortOrder }).keys;
    expect([sorted(0, 1), sorted(0, 2)]).toEqual(['abcd', 'dcba']);
    expect([sorted(1, 1), sorted(1, 2)]).toEqual(['acdb', 'bacd']);
    expect([sorted(2, 1), sorted(2, 2)]).toEqual(['abcd', 'dcba']);
    expect([sorted(3, 1), sorted(3, 2)]).toEqual(['acdb', 'bdca']);
    expect([sorted(4, 1), sorted(4, 2)]).toEqual(['dcab', 'bacd']);
  });

  test('sorts up when a target is given without an order, but applies the limit first, as etcd does', () => {
    expect(read('a', '\0', { sortTarget: 4 }).keys).toBe('dcab');
    expect(read('a', '\0', { sortTarget: 4, limit: 1 })).toEqual({ keys: 'a', rest: { more: true, count: 4 } });
    expect(read('a', '\0', { sortTarget: 4, sortOrder: 1, limit: 1 }).keys).toBe('d');
  });

  test('leaves the values out of a keys-only range, but may sort by them', () => {
    const result = machine().range(rangeRequest('a', '\0', { keysOnly: true, sortTarget: 4, sortOrder: 1 }));
    expect(result).toMatchObject({ kvs: [{ key: 'd', value: '', modRevision: 5 }, {}, {}, {}] });
  });

  test('reads the past, from the compacted revision on', () => {
    const state = machine();
    const keysAt = (revision: number): string => {
      const result = state.range(rangeRequest('a', '\0', { revision }));
      return 'kind' in result ? result.code : result.kvs.map((kv) => kv.key + kv.value).join(' ');
    };
    expect([1, 3, 7, 8, 9].map(keysAt)).toEqual(['', 'a4 b3', 'a4 b5 c2 d1 e0', 'a4 b5 c2 d1', 'FutureRevision']);
    applyNext(state, { kind: 'compact', revision: 7 });
    expect([6, 7, 8].map(keysAt)).toEqual(['Compacted', 'a4 b5 c2 d1 e0', 'a4 b5 c2 d1']);
    while (state.collectGarbage(1));
    expect([6, 7, 8].map(keysAt)).toEqual(['Compacted', 'a4 b5 c2 d1 e0', 'a4 b5 c2 d1']);
  });
});
