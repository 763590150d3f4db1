import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../tests/tidy/repository.ts';
import { runSeeds } from './run-seeds.ts';
import type { Scenario } from './simulate.ts';

const folder = join(repositoryRoot, 'simulation/regressions');
const files = existsSync(folder) ? readdirSync(folder).sort() : [];

test('no scenario that failed once fails again', async () => {
  for (const file of files) {
    const scenario = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Scenario;
    const { failures } = await runSeeds([scenario]);
    expect(failures, file).toEqual([]);
  }
});
