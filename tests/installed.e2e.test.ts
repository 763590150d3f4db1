import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The content of node_modules after an install of `@tenure/cli` alone, and where it comes from in this repository. */
const installed: Readonly<Record<string, readonly string[]>> = {
  '@tenure/cli': ['packages/cli/package.json', 'packages/cli/bin', 'packages/cli/dist'],
  tenure: ['packages/client/package.json', 'packages/client/dist'],
  '@tenure/grpc-client': ['packages/grpc-client/package.json', 'packages/grpc-client/dist'],
  '@tenure/grpc-server': ['packages/grpc-server/package.json', 'packages/grpc-server/dist'],
  '@tenure/protocol': ['packages/protocol/package.json', 'packages/protocol/dist'],
  commander: ['node_modules/commander'],
  '@bufbuild/protobuf': ['node_modules/@bufbuild/protobuf'],
};

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenure-installed-'));
  for (const [name, sources] of Object.entries(installed)) {
    for (const source of sources) {
      const isWhole = source.startsWith('node_modules');
      const target = isWhole ? name : join(name, source.split('/').at(-1) ?? '');
      await cp(join(root, source), join(folder, 'node_modules', target), { recursive: true, dereference: true });
    }
  }
});
afterAll(() => rm(folder, { recursive: true }));

function tenure(...argv: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = join(folder, 'node_modules/@tenure/cli/bin/tenure.js');
  return spawnSync(process.execPath, [command, ...argv], { encoding: 'utf8', cwd: folder });
}

describe('installed without the server', () => {
  test('the client works', () => {
    expect(tenure('--version')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(tenure('get', 'a', '--endpoints', '127.0.0.1:1')).toMatchObject({
      status: 3,
      stderr: 'Error: no server at 127.0.0.1:1; start one with: tenure serve\n',
    });
  });

  test.each([
    ['serve', '--help'],
    ['log', 'verify'],
    ['snapshot', 'status', 'file'],
  ])('tenure %s %s names the command that installs the server', (...argv) => {
    const { status, stdout, stderr } = tenure(...argv);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^Error: [^\n]*npm install @tenure\/server[^\n]*\n$/);
  });
});

test('a checkout that was not built prints what to do', async () => {
  await rm(join(folder, 'node_modules/@tenure/cli/dist'), { recursive: true });
  const { status, stderr } = tenure('--help');
  expect(status).toBe(1);
  expect(stderr).toMatch(/^Error: the tenure command is not built yet: run npm run build first/);
});
