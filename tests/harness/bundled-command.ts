import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { builtCommand, testedCommandVariable } from '@tenure/test-support';

/** Bundles the command into one file for the processes of this run. The returned function removes the file. */
export async function bundleCommand(): Promise<() => void> {
  if (process.env[testedCommandVariable] !== undefined) return () => undefined;
  const folder = mkdtempSync(join(tmpdir(), 'tenure-command-'));
  // The command reads its version from the manifest in the parent folder.
  const manifest = join(dirname(builtCommand), '../package.json');
  writeFileSync(join(folder, 'package.json'), readFileSync(manifest));
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({ input: builtCommand, platform: 'node', external: ['pg-native'] });
  await bundle.write({ dir: join(folder, 'dist'), format: 'esm', entryFileNames: '[name].js' });
  await bundle.close();
  process.env[testedCommandVariable] = join(folder, 'dist/tenure.js');
  return () => rmSync(folder, { recursive: true, force: true });
}
