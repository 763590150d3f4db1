import { afterAll, beforeAll, describe, test } from 'vitest';
import type { SharedLogEngine } from '../log-engine.ts';
import { engineConformance } from '../testing/engine-conformance.ts';
import { seedCases } from '../testing/seed-cases.ts';
import { openPostgresEngine } from './postgres-engine.ts';
import { PostgresCluster, hasPostgres } from './testing/postgres-cluster.ts';

describe.runIf(hasPostgres())('the PostgreSQL engine', () => {
  let cluster: PostgresCluster;
  let schemas = 0;
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
  });
  afterAll(() => cluster?.dispose());

  for (const { name, run } of [...engineConformance({ isDurable: true }), ...seedCases]) {
    test(name, async () => {
      const schema = `log_${++schemas}`;
      let engine: SharedLogEngine | undefined;
      const dispose = async (): Promise<void> => engine?.close();
      const open = async (): Promise<SharedLogEngine> =>
        (engine = await openPostgresEngine({ url: cluster.url(), schema }));
      await run({ open, dispose }).finally(dispose);
    });
  }
});
