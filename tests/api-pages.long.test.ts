import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

/** A warning, such as a dead link or a type without a page, makes typedoc fail. */
test('npm run docs:api generates pages for every subpath of the library, without a warning', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-api-'));
  try {
    await promisify(execFile)('npm', ['run', '-s', 'docs:api', '--', '--out', folder], { cwd: root });
    const manifest = JSON.parse(readFileSync(join(root, 'packages/client/package.json'), 'utf8')) as {
      exports: Readonly<Record<string, unknown>>;
    };
    const subpaths = Object.keys(manifest.exports).filter((path) => path !== './package.json');
    expect(subpaths.length).toBeGreaterThan(5);
    for (const path of subpaths) {
      const page = path === '.' ? 'index' : path.slice(2);
      expect(existsSync(join(folder, 'modules', `${page}.html`)), path).toBe(true);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 180_000);
