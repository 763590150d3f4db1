import { describe, expect, test } from 'vitest';
import { openingRefused } from './postgres-failure.ts';

function wordsFor(message: string): string {
  return openingRefused(new Error(message)).message;
}

describe('why the log cannot be opened', () => {
  test('nobody listens: start it', () => {
    expect(wordsFor('connect ECONNREFUSED')).toMatch(/ECONNREFUSED; start the database, or give its right address/);
  });

  test('commits do not end: a standby may be missing', () => {
    const words = wordsFor('host:1 did not answer within 5000 ms');
    expect(words).toContain('takes connections and does not finish what it is asked');
    expect(words).toContain('synchronous_standby_names');
    expect(words).not.toContain('start the database');
  });
});
