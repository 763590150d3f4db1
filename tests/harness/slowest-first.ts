import { existsSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The slowest files start first; otherwise they would run alone at the end. */
const slowest: readonly string[] = [
  'tests/library/packages.e2e.test.ts',
  'tests/commands/guide.e2e.test.ts',
  'tests/serve.e2e.test.ts',
  'conformance/tenure.test.ts',
  'conformance/etcd.test.ts',
  'conformance/differential.test.ts',
  'tests/library/etcd-backend.e2e.test.ts',
  'tests/commands/lock.e2e.test.ts',
  'tests/cli.e2e.test.ts',
  'tests/cluster/cluster.e2e.test.ts',
  'tests/etcdctl.e2e.test.ts',
  'tests/memory.e2e.test.ts',
  'tests/crash/crash.e2e.test.ts',
  'packages/client/src/dynamodb/dynamodb-backend.test.ts',
  'packages/server/src/engines/etcd/etcd-engine.room.test.ts',
  'packages/server/src/engines/postgres/postgres-engine.replication.test.ts',
  'packages/server/src/engines/postgres/postgres-engine.outage.test.ts',
  'packages/server/src/engines/etcd/etcd-engine.fault.test.ts',
  'tests/tidy.test.ts',
  'tests/library/holds-under-faults.long.test.ts',
  'tests/cluster/conformance.long.test.ts',
];

const gone = slowest.filter((path) => !existsSync(new URL(`../../${path}`, import.meta.url)));
if (gone.length > 0)
  throw new Error(`tests/harness/slowest-first.ts names files that do not exist: ${gone.join(', ')}`);

/** Runs files in a fixed order: those listed above, then the others by name. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((one, other) => rankOf(one) - rankOf(other) || (one.moduleId < other.moduleId ? -1 : 1));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = slowest.findIndex((path) => moduleId.endsWith(`/${path}`));
  return rank < 0 ? slowest.length : rank;
}
