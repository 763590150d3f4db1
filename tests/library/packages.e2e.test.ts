import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packed = ['protocol', 'core', 'codec', 'grpc-client', 'grpc-server', 'server', 'cli', 'client'];
const oldTypeScript = 'typescript-5.9';

/** Installs from the registry, and compiles twice. */
const timeoutMs = 240_000;

/** Compiled by a program with no types of Node and none of the DOM. */
const bareProgram = `
import { createLeaseManager, LeaseLostError, type Hold, type LeaseBackend } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { fenceClause, requireGuarded } from 'tenure/guard';
import { dynamodbBackend } from 'tenure/dynamodb';
import { backendConformance, FakeClock } from 'tenure/testing';
const backend: LeaseBackend = memoryBackend({ clock: new FakeClock() });
const leases = createLeaseManager({ backend, ttlMs: 1000 });
await using hold: Hold = await leases.acquire('a', { wait: 'none' });
const isLost: boolean = hold.signal.aborted && hold.signal.reason instanceof LeaseLostError;
requireGuarded(fenceClause(hold).where.length, hold);
export { isLost, backendConformance, dynamodbBackend };
`;

/** With the drivers of a program, and so with the types of Node. */
const etcdProgram = `
import { createLeaseManager } from 'tenure';
import { compare, EtcdClient, etcdBackend, operation } from 'tenure/etcd';
const client = new EtcdClient({ endpoints: 'localhost:2379' });
const leases = createLeaseManager({ backend: etcdBackend({ client }) });
const signal: AbortSignal = (await leases.acquire('a')).signal;
await client.kv.txn().if(compare.isAbsent('a')).do(operation.put('a', signal.aborted ? '1' : '2')).commit();
`;

let folder: string;
let tarballs: string[];
let project: string;

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(status, `${command} ${args.join(' ')}:\n${stdout}${stderr}`).toBe(0);
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tenure-packages-'));
  run('npm', ['pack', '-s', ...packed.map((name) => join(root, 'packages', name))], folder);
  tarballs = readdirSync(folder).map((name) => join(folder, name));
  project = join(folder, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
}, timeoutMs);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Installs into the project that these tests share, so each test finds the packages of the tests before it. */
function install(packages: readonly string[]): void {
  run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packages], project);
}

function typeCheck(program: string, types: readonly string[]): void {
  writeFileSync(join(project, 'app.ts'), program);
  const compilerOptions = {
    lib: ['ES2022'],
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    types,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['app.ts'] }));
  for (const compiler of [join(project, 'node_modules', oldTypeScript), join(root, 'node_modules/typescript')]) {
    run(process.execPath, [join(compiler, 'bin/tsc'), '-p', '.'], project);
  }
}

async function bundledBytes(program: string): Promise<number> {
  const input = join(project, 'bundle.js');
  writeFileSync(input, program);
  const bundle = await rolldown({ input, logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  return output.reduce((sum, chunk) => sum + (chunk.type === 'chunk' ? Buffer.byteLength(chunk.code) : 0), 0);
}

describe('the packed packages', { timeout: timeoutMs }, () => {
  test('compile for a program without other types, and install no driver', () => {
    const library = tarballs.filter((path) => !/tenure-(server|core|codec|cli)-\d/.test(path));
    install([...library, `${oldTypeScript}@npm:typescript@5.9`]);
    typeCheck(bareProgram, []);
    const installed = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(installed).toStrictEqual(['@bufbuild', '@tenure', 'tenure', oldTypeScript]);
  });

  test('compile beside the driver of etcd', () => {
    install(['@types/node@20']);
    typeCheck(etcdProgram, ['node']);
  });

  test('have manifests without findings of publint', async () => {
    for (const path of tarballs) {
      const { buffer: tarball } = Uint8Array.from(readFileSync(path));
      const { messages } = await publint({ pack: { tarball }, strict: true });
      expect(messages, path).toEqual([]);
    }
  });

  test('have types that resolve like the code', async () => {
    for (const path of tarballs) {
      const result = await checkPackage(createPackageFromTarballData(readFileSync(path)));
      if (result.types === false) throw new Error(`${path} has no types`);
      // These are packages for ESM alone: Node 20.19 and newer also takes them by require().
      const found = result.problems.filter((problem) => {
        const isOlder = 'resolutionKind' in problem && ['node10', 'node16-cjs'].includes(problem.resolutionKind);
        return !isOlder;
      });
      expect(found, path).toEqual([]);
    }
  });

  test('the memory backend is less than 15 kB in a bundle, with the manager less than 42 kB', async () => {
    expect(await bundledBytes("export * from 'tenure/memory';")).toBeLessThan(15_000);
    const both = "export { createLeaseManager } from 'tenure'; export { memoryBackend } from 'tenure/memory';";
    expect(await bundledBytes(both)).toBeLessThan(42_000);
  });

  test('errors of one installed copy are recognised by another', async () => {
    const copies = ['one', 'two'].map((name) => join(project, 'node_modules', `tenure-${name}`));
    for (const copy of copies) run('cp', ['-r', join(project, 'node_modules/tenure'), copy], folder);
    const [one, two] = (await Promise.all(copies.map((copy) => import(join(copy, 'dist/index.js'))))) as {
      LeaseLostError: new (name: string, reason: string) => Error;
      TenureError: new () => Error;
    }[];
    if (one === undefined || two === undefined) throw new Error('two copies are needed');
    expect(one.LeaseLostError).not.toBe(two.LeaseLostError);
    const lost = new one.LeaseLostError('a', 'expired');
    expect(lost).toBeInstanceOf(two.LeaseLostError);
    expect(lost).toBeInstanceOf(two.TenureError);
  });
});
