import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { repositoryRoot } from '../tests/tidy/repository.ts';
import { simulate } from './simulate.ts';

const seedCount = { commit: 5, ci: 20, soak: 200 }[inject('effort')];
/** CI sets this to another version of Node than the one that runs the tests. */
const nodes = [process.execPath, process.env['TENURE_OTHER_NODE']].filter((path) => path !== undefined);

test('a seed runs identically in one process, in a bundle, and on each version of Node', async () => {
  const expected: string[] = [];
  for (let seed = 1; seed <= seedCount; seed += 1) {
    const report = await simulate(seed);
    expect(await simulate(seed)).toEqual(report);
    expected.push(`${seed} ${report.traceHash} ${report.violations.length}`);
  }
  expect(new Set(expected.map((line) => line.split(' ')[1])).size).toBe(seedCount);
  const args = ['scripts/simulate.mjs', '--hashes', '--seeds', `1-${seedCount}`];
  for (const node of nodes) {
    const { stdout } = await promisify(execFile)(node, args, {
      cwd: repositoryRoot,
      env: { PATH: process.env['PATH'] },
    });
    expect(stdout.trim().split('\n'), node).toEqual(expected);
  }
});
