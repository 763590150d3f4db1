import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const built = fileURLToPath(new URL('../../packages/cli/bin/tenure.js', import.meta.url));
const variable = 'TENURE_TEST_COMMAND';

/**
 * The `tenure` command that tests start as a server: the built packages in one file, which starts in half of the time,
 * since most of a start is looking for four hundred files. Tests of what is installed start the command as it is
 * packed. `TENURE_TEST_COMMAND` names another, such as `packages/cli/bin/tenure.js` for a debugger.
 */
export function testedCommand(): string {
  return process.env[variable] ?? built;
}

/** Makes that file for the processes of this run; the function that it resolves with removes it. */
export async function bundleCommand(): Promise<() => void> {
  if (process.env[variable] !== undefined) return () => undefined;
  const folder = mkdtempSync(join(tmpdir(), 'tenure-command-'));
  // The command reads its version from the manifest above it.
  const manifest = join(dirname(built), '../package.json');
  writeFileSync(join(folder, 'package.json'), readFileSync(manifest));
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({ input: built, platform: 'node', external: ['pg-native'] });
  await bundle.write({ dir: join(folder, 'dist'), format: 'esm', entryFileNames: '[name].js' });
  await bundle.close();
  process.env[variable] = join(folder, 'dist/tenure.js');
  return () => rmSync(folder, { recursive: true, force: true });
}
