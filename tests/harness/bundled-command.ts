import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { builtCommand, testedCommandVariable } from '@tenure/test-support';

/**
 * Bundles the command into one file for the processes of this run, which a build during the run does not change. The
 * returned function removes it.
 */
export function bundleCommand(): () => void {
  if (process.env[testedCommandVariable] !== undefined) return () => undefined;
  const folder = mkdtempSync(join(tmpdir(), 'tenure-command-'));
  const cli = dirname(dirname(builtCommand));
  const script = join(cli, '../../scripts/bundle-command.mjs');
  const { status } = spawnSync(process.execPath, [script, join(folder, 'dist/bundle.js')], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${script} ended with ${status}`);
  mkdirSync(join(folder, 'bin'));
  // The command reads its version from the manifest.
  for (const path of ['package.json', 'bin/tenure.js']) copyFileSync(join(cli, path), join(folder, path));
  process.env[testedCommandVariable] = join(folder, 'bin/tenure.js');
  return () => rmSync(folder, { recursive: true, force: true });
}
