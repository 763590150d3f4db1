import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { SharedLogEngine } from '../log-engine.ts';
import { engineConformance } from '../testing/engine-conformance.ts';
import { seedCases } from '../testing/seed-cases.ts';
import { openPostgresEngine } from './postgres-engine.ts';

describe.runIf(hasPostgres())('the PostgreSQL engine', () => {
  let database: PostgresDatabase;
  let schemas = 0;
  beforeAll(async () => {
    database = await PostgresDatabase.create();
  });
  afterAll(() => database?.dispose());

  for (const { name, run } of [...engineConformance({ isDurable: true }), ...seedCases]) {
    test(name, async () => {
      const schema = `log_${++schemas}`;
      let engine: SharedLogEngine | undefined;
      const dispose = async (): Promise<void> => engine?.close();
      const open = async (): Promise<SharedLogEngine> =>
        (engine = await openPostgresEngine({ url: database.url(), schema }));
      await run({ open, dispose }).finally(dispose);
    });
  }
});
