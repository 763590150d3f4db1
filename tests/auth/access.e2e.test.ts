import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { expect, inject, test } from 'vitest';
import { runAccess } from './access-run.ts';

test.skipIf(!hasPostgres())(
  'no request is decided by permissions from before an acknowledged change, while the leader is killed',
  { timeout: 180_000 },
  async () => {
    const database = await PostgresDatabase.create();
    try {
      const run = { engine: database.url(), flags: [], kills: 1, seed: inject('seed') };
      await expect(runAccess(run)).resolves.toBeUndefined();
    } finally {
      await database.dispose();
    }
  },
);
