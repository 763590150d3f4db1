import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePostgresAddress } from './postgres-address.ts';
import { openPrimarySession } from './primary-session.ts';

describe.runIf(hasPostgres())('a session with the primary', () => {
  let database: PostgresDatabase;
  beforeAll(async () => {
    database = await PostgresDatabase.create();
  });
  afterAll(() => database?.dispose());

  test('compiles no statement, for any estimated cost', async () => {
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
      expect(explained).toHaveProperty('Plan');
      expect(explained).not.toHaveProperty('JIT');
    } finally {
      await session.end();
    }
  });
});
