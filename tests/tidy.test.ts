import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkAny } from './tidy/any-rule.ts';
import { checkBannedWords } from './tidy/banned-words-rule.ts';
import { checkRetiredWords } from './tidy/retired-words-rule.ts';
import { checkCircles } from './tidy/circle-rule.ts';
import { checkCorePurity } from './tidy/core-purity-rule.ts';
import { checkHandedTime } from './tidy/handed-time-rule.ts';
import { findDeadExports } from './tidy/dead-exports-rule.ts';
import { checkDependencies } from './tidy/dependency-rule.ts';
import { checkFolders } from './tidy/folder-rule.ts';
import { checkLockfile } from './tidy/lockfile-rule.ts';
import { checkDocumentsNamed, checkMarkdown } from './tidy/markdown-rule.ts';
import { checkNames } from './tidy/naming-rule.ts';
import { checkPackages } from './tidy/packages-rule.ts';
import { parseSource } from './tidy/parsed-source.ts';
import { repositoryFiles, repositoryRoot } from './tidy/repository.ts';
import type { Violation } from './tidy/repository.ts';
import { checkSizes } from './tidy/size-rule.ts';
import { checkTestImports } from './tidy/test-import-rule.ts';

/** STYLE.md says what these rules are for; `tests/tidy/rules.test.ts` shows that each of them can fail. */
describe('the repository', () => {
  const files = repositoryFiles();
  const paths = new Set(files.map((file) => file.path));
  const sources = files.filter((file) => /\.(ts|mjs|js)$/.test(file.path)).map(parseSource);

  test('has files to check in every package', () => {
    for (const name of [
      'protocol',
      'core',
      'codec',
      'grpc-client',
      'grpc-server',
      'server',
      'client',
      'cli',
      'test-support',
    ]) {
      expect(
        sources.some((source) => source.path.startsWith(`packages/${name}/src/`)),
        name,
      ).toBe(true);
    }
  });

  test('imports only downward, and never in a cycle', () => {
    expectNone(sources.flatMap(checkDependencies));
    expectNone(sources.flatMap(checkFolders));
    expectNone(checkCircles(sources));
  });

  test('lets tests assert in one way, and import packages by name', () => {
    expectNone(sources.flatMap(checkTestImports));
  });

  test('keeps clocks, randomness and I/O out of the core', () => {
    expectNone(sources.flatMap(checkCorePurity));
  });

  test('keeps the timers, clocks and randomness of the process out of what a simulator runs', () => {
    expectNone(sources.flatMap(checkHandedTime));
  });

  test('keeps files, functions and lines short', () => {
    expectNone(sources.flatMap(checkSizes));
  });

  test('names files after their content', () => {
    expectNone(sources.flatMap((source) => checkNames(source, paths)));
  });

  test('holds none of the banned words', () => {
    expectNone(files.flatMap(checkBannedWords));
    expectNone(files.flatMap(checkRetiredWords));
    expectNone(sources.flatMap(checkAny));
  });

  test('has markdown with one title and no dead link', () => {
    expectNone(files.flatMap((file) => checkMarkdown(file, paths)));
    expectNone(sources.flatMap((source) => checkDocumentsNamed(source, paths)));
  });

  test('uses, declares and documents its dependencies', () => {
    const manifests = files.filter((file) => /^(packages\/[^/]+\/)?package\.json$/.test(file.path));
    const documentation = readFileSync(join(repositoryRoot, 'docs/dependencies.md'), 'utf8');
    expectNone(checkPackages(manifests, sources, documentation));
  });

  test('has a lockfile that npm ci accepts on every system', () => {
    const lockfile = 'package-lock.json';
    expectNone(checkLockfile(lockfile, readFileSync(join(repositoryRoot, lockfile), 'utf8')));
  });

  test('exports only what is imported elsewhere', async () => {
    expectNone(await findDeadExports(repositoryRoot));
  });

  test('has the documents that a new contributor needs', () => {
    for (const name of ['README', 'ARCHITECTURE', 'STYLE', 'CONTRIBUTING', 'CHANGELOG', 'docs/README']) {
      expect(existsSync(join(repositoryRoot, `${name}.md`)), `${name}.md`).toBe(true);
    }
    expect(readFileSync(join(repositoryRoot, 'LICENSE'), 'utf8')).toContain('Apache License');
  });
});

function expectNone(violations: readonly Violation[]): void {
  const lines = violations.map(({ path, line, rule, message }) => `${path}:${line}: ${rule}: ${message}`);
  if (lines.length > 0) expect.fail(`${lines.length} found\n${lines.join('\n')}`);
}
