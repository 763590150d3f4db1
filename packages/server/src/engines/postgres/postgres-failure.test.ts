import { describe, expect, test } from 'vitest';
import { openingRefused, troubleOf, unavailable } from './postgres-failure.ts';

function wordsFor(message: string): string {
  return openingRefused(new Error(message)).message;
}

describe('why the log cannot be opened', () => {
  test('no server listens: start it', () => {
    expect(wordsFor('connect ECONNREFUSED')).toMatch(/ECONNREFUSED; start the database, or give its right address/);
  });

  test('commits do not end: a standby may be missing', () => {
    const words = wordsFor('host:1 did not answer within 5000 ms');
    expect(words).toContain('takes connections and does not finish what it is asked');
    expect(words).toContain('synchronous_standby_names');
    expect(words).not.toContain('start the database');
  });
});

test('the fault of the database follows from its error code, or else from the connection error', () => {
  const said = (code: string): Error => Object.assign(new Error('words'), { code });
  const troubles = [
    ['53100', 'full'],
    ['25006', 'readOnly'],
    ['53300', 'busy'],
    ['28P01', 'refusing'],
    ['42501', 'refusing'],
    ['57P03', 'unreachable'],
    ['08006', 'unreachable'],
    ['XX001', 'failing'],
  ] as const;
  for (const [code, trouble] of troubles) {
    expect(troubleOf(said(code)), code).toBe(trouble);
    expect(unavailable('an append', said(code)).trouble, code).toBe(trouble);
    expect(troubleOf(new Error('no host', { cause: new AggregateError([new Error('x'), said(code)]) })), code).toBe(
      trouble,
    );
  }
  expect(troubleOf(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))).toBe('unreachable');
  expect(troubleOf(undefined)).toBe('unreachable');
});
