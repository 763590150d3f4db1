import { describe, expect, test } from 'vitest';
import { type ErrorName, errorCatalogue } from './error-catalogue.ts';

const entries = Object.entries(errorCatalogue);

describe('the error catalogue', () => {
  test('gives every error a text with the prefix that clients look for', () => {
    expect(entries.filter(([, { text }]) => !/^etcdserver: \S.*\S$/.test(text))).toEqual([]);
  });

  test('names each text once, but for the errors of ours that borrow one', () => {
    const borrowed = new Set<string>(['StaleEpoch'] satisfies ErrorName[]);
    const texts = entries.filter(([name]) => !borrowed.has(name)).map(([, { text }]) => text);
    expect(new Set(texts).size).toBe(texts.length);
  });

  test("uses gRPC's error codes only, and never Ok", () => {
    expect(entries.filter(([, { code }]) => !Number.isInteger(code) || code < 1 || code > 16)).toEqual([]);
  });

  test('gives the same code to errors that differ only by their cause', () => {
    const timeouts: ErrorName[] = [
      'Timeout',
      'TimeoutDueToLeaderFailure',
      'TimeoutDueToConnectionLost',
      'TimeoutWaitAppliedIndex',
    ];
    expect(new Set(timeouts.map((name) => errorCatalogue[name].code))).toEqual(new Set([14]));
  });
});
