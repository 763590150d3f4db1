import assert from 'node:assert/strict';
import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parsePostgresAddress } from './postgres-address.ts';
import { openPrimarySession } from './primary-session.ts';

describe.runIf(hasPostgres())('a session with the primary', () => {
  let database: PostgresDatabase;
  beforeAll(async () => {
    database = await PostgresDatabase.create();
  });
  afterAll(() => database?.dispose());

  test('compiles no statement, however much the planner thinks that it costs', async () => {
    await database.query('CREATE TABLE without_index AS SELECT 1 AS version');
    const session = await openPrimarySession(
      parsePostgresAddress(database.url()),
      'test',
      new AbortController().signal,
    );
    try {
      const text = 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT FROM without_index WHERE version = 1';
      const [row] = await session.query({ text });
      const [explained] = (row?.['QUERY PLAN'] ?? []) as Record<string, unknown>[];
      assert.ok(explained !== undefined && 'Plan' in explained);
      assert.equal(explained['JIT'], undefined);
    } finally {
      await session.end();
    }
  });
});
