import { testDatabasesVariable } from '@tenure/test-support';
import type { TestProject } from 'vitest/node';
import { bundleCommand } from './bundled-command.ts';
import { effortOf } from './effort.ts';
import { seedOf } from './seed.ts';
import { TestDatabases } from './test-databases.ts';

/**
 * Runs once for each project, in the main process, before its tests. The returned function runs after the last of them.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const effort = effortOf(process.env['TENURE_TEST_EFFORT']);
  const seed = seedOf(process.env['TENURE_TEST_SEED'], effort);
  project.provide('effort', effort);
  project.provide('seed', seed);
  // All projects of a run have the same seed, even a fresh one, and share the databases.
  process.env['TENURE_TEST_SEED'] = `${seed}`;
  // Unit tests need no build.
  const removeCommand = project.name === 'unit' ? undefined : bundleCommand();
  if (process.env[testDatabasesVariable] !== undefined) return async () => removeCommand?.();
  const databases = await TestDatabases.start();
  process.env[testDatabasesVariable] = databases.url;
  return async () => {
    removeCommand?.();
    await databases.stop();
  };
}
