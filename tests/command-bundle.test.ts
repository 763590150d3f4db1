import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { builtCommand } from '@tenure/test-support';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const builtSeconds = 1_000_000;

/** The real command, over two programs that print which of them was loaded. */
describe('the command of a checkout', () => {
  let packages: string;

  beforeEach(() => {
    packages = mkdtempSync(join(tmpdir(), 'tenure-packages-'));
    write('cli/package.json', '{ "type": "module" }');
    write('cli/dist/index.js', program('modules'));
    mkdirSync(join(packages, 'cli/bin'));
    copyFileSync(builtCommand, join(packages, 'cli/bin/tenure.js'));
  });

  afterEach(() => rmSync(packages, { recursive: true, force: true }));

  function write(path: string, text: string, modifiedSeconds = builtSeconds): void {
    const file = join(packages, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    utimesSync(file, modifiedSeconds, modifiedSeconds);
  }

  function program(name: string): string {
    return `export async function main(argv, { stdout }) { stdout.write('${name}'); return 0; }\n`;
  }

  function loaded(): string {
    return spawnSync(process.execPath, [join(packages, 'cli/bin/tenure.js')], { encoding: 'utf8' }).stdout;
  }

  test('is one file, if that was made after the last build of each package', () => {
    write('cli/dist/bundle.js', program('bundle'), builtSeconds + 1);
    for (const name of ['cli', 'core', 'server']) write(`${name}/dist/.tsbuildinfo`, '{}');
    expect(loaded()).toBe('bundle');
  });

  // Nothing of the command is in the package for tests.
  const bundled = readdirSync(join(import.meta.dirname, '../packages')).filter((name) => name !== 'test-support');
  test.each(bundled)('is its modules after a later build of %s', (name) => {
    write('cli/dist/bundle.js', program('bundle'), builtSeconds);
    write(`${name}/dist/.tsbuildinfo`, '{}', builtSeconds);
    expect(loaded()).toBe('modules');
  });

  test('is its modules where there is no bundle, as in an installed package', () => {
    expect(loaded()).toBe('modules');
  });
});
