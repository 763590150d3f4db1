import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const committed = join(root, 'packages/protocol/src/gen');
/** The generator's exit code when buf is not installed for this platform. */
const noBuf = 3;

function contents(folder: string): ReadonlyMap<string, string> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

describe('the generated messages', () => {
  let out: string;

  beforeAll(() => {
    out = mkdtempSync(join(tmpdir(), 'tenure-generated-'));
  });
  afterAll(() => {
    rmSync(out, { recursive: true, force: true });
  });

  test('are the output of the generator for the .proto files', (context) => {
    const script = join(root, 'scripts/generate-protocol.mjs');
    const run = spawnSync(process.execPath, [script, '--out', out], { encoding: 'utf8' });
    if (run.status === noBuf && process.env['CI'] !== 'true') {
      context.skip(run.stderr.trim());
    }
    expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 0, stderr: '' });
    expect(contents(out)).toEqual(contents(committed));
  });
});
