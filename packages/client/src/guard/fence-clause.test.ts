import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { fenceClause, fenceStatements, requireGuarded } from './index.ts';

const hold = { name: 'nightly', fencingToken: 2n ** 60n };

describe('guards for SQL', () => {
  test('the clause has the whole token, and only a valid column', () => {
    expect(fenceClause(hold)).toStrictEqual({
      set: 'fence = 1152921504606846976',
      where: 'fence <= 1152921504606846976',
    });
    expect(fenceClause(hold, { column: 'jobs.token' }).where).toBe('jobs.token <= 1152921504606846976');
    for (const column of ['a; DROP TABLE jobs', '', 'a b', '1a', 'a.b.c.d']) {
      expect(() => fenceClause(hold, { column })).toThrow(UsageError);
    }
  });

  test('the statements have the resource as a value, never in their text', () => {
    const { check, ensure } = fenceStatements(hold, { dialect: 'postgres', resource: "it's" });
    expect([check.values, ensure.values]).toEqual([["it's"], ["it's"]]);
    expect(check.text).toContain('resource = $1');
    expect(check.text.includes("it's")).toBe(false);
    expect(fenceStatements(hold, { dialect: 'sqlite' }).ensure.values[0]).toBe('nightly');
    // As digits, which are the same in every character set.
    expect(fenceStatements(hold, { dialect: 'mysql', resource: 'ä' }).check.values).toEqual(['c3a4']);
  });

  test('a resource that no table can store is refused before any query', () => {
    for (const resource of ['', 'x'.repeat(513), 'ä'.repeat(257), 'a\0b', '\ud800']) {
      expect(() => fenceStatements(hold, { dialect: 'sqlite', resource })).toThrow(UsageError);
    }
    expect(fenceStatements(hold, { dialect: 'sqlite', resource: 'ä'.repeat(256) }).check.values.length).toBe(1);
  });

  test('a write that changed no row was refused', () => {
    for (const changed of [0, 0n, false, null, undefined]) {
      expect(() => requireGuarded(changed, hold)).toThrow(LeaseLostError);
    }
    for (const changed of [1, 2n, true]) requireGuarded(changed, hold);
  });
});
