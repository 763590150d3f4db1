import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { fenceClause, fenceStatements, requireGuarded } from './index.ts';

const hold = { name: 'nightly', fencingToken: 2n ** 60n };

describe('guards for SQL', () => {
  test('the clause holds the whole token, and a column that is one', () => {
    assert.deepEqual(fenceClause(hold), {
      set: 'fence = 1152921504606846976',
      where: 'fence <= 1152921504606846976',
    });
    assert.equal(fenceClause(hold, { column: 'jobs.token' }).where, 'jobs.token <= 1152921504606846976');
    for (const column of ['a; DROP TABLE jobs', '', 'a b', '1a', 'a.b.c.d']) {
      assert.throws(() => fenceClause(hold, { column }), UsageError);
    }
  });

  test('the statements have the resource as a value, never in their text', () => {
    const { check, ensure } = fenceStatements(hold, { dialect: 'postgres', resource: "it's" });
    assert.deepEqual([check.values, ensure.values], [["it's"], ["it's"]]);
    assert.ok(check.text.includes('resource = $1') && !check.text.includes("it's"));
    assert.equal(fenceStatements(hold, { dialect: 'sqlite' }).ensure.values[0], 'nightly');
    // As digits, which no character set changes.
    assert.deepEqual(fenceStatements(hold, { dialect: 'mysql', resource: 'ä' }).check.values, ['c3a4']);
  });

  test('what no table can keep is refused before anything is asked', () => {
    for (const resource of ['', 'x'.repeat(513), 'ä'.repeat(257), 'a\0b', '\ud800']) {
      assert.throws(() => fenceStatements(hold, { dialect: 'sqlite', resource }), UsageError);
    }
    assert.equal(fenceStatements(hold, { dialect: 'sqlite', resource: 'ä'.repeat(256) }).check.values.length, 1);
  });

  test('a write that changed nothing was refused', () => {
    for (const changed of [0, 0n, false, null, undefined]) {
      assert.throws(() => requireGuarded(changed, hold), LeaseLostError);
    }
    for (const changed of [1, 2n, true]) requireGuarded(changed, hold);
  });
});
