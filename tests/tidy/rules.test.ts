import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { checkAny } from './any-rule.ts';
import { checkCircles } from './circle-rule.ts';
import { checkCorePurity } from './core-purity-rule.ts';
import { checkHandedTime } from './handed-time-rule.ts';
import { findDeadExports } from './dead-exports-rule.ts';
import { checkDependencies } from './dependency-rule.ts';
import { checkFolders } from './folder-rule.ts';
import { checkLockfile } from './lockfile-rule.ts';
import { checkDocumentsNamed, checkMarkdown } from './markdown-rule.ts';
import { checkNames } from './naming-rule.ts';
import { checkPackages } from './packages-rule.ts';
import { parseSource } from './parsed-source.ts';
import { lineAt, repositoryFiles } from './repository.ts';
import type { Violation } from './repository.ts';
import { checkSizes } from './size-rule.ts';
import { checkTestImports } from './test-import-rule.ts';

/** Each rule refuses a violation and accepts the nearest correct code: a rule that cannot fail has no use. */
const source = (path: string, text: string) => parseSource({ path, text });
const messages = (violations: readonly Violation[]) => violations.map(({ line, message }) => `${line}: ${message}`);

describe('the dependency rule', () => {
  const check = (path: string, text: string) => messages(checkDependencies(source(path, text)));

  test.each([
    ['packages/protocol/src/a.ts', `import { x } from '@tenure/core';`, '1: protocol may not import core'],
    ['packages/core/src/a.ts', `import type { X } from '@tenure/protocol';`, '1: core may not import protocol'],
    ['packages/core/src/a.ts', `import p from 'pino';`, '1: core may import only sorted-btree, not pino'],
    ['packages/server/src/a.ts', `import { x } from 'tenure/etcd';`, '1: server may not import client'],
    ['packages/server/src/a.ts', `import { x } from '@tenure/test-support';`, '1: server may not import test-support'],
    ['packages/client/src/testing/a.ts', `import '@tenure/test-support';`, '1: client may not import test-support'],
    ['packages/test-support/src/a.ts', `import { x } from '@tenure/core';`, '1: test-support may not import core'],
    ['packages/server/src/a.ts', `\nexport { x } from '@tenure/cli';`, '2: server may not import cli'],
    ['packages/server/src/a.ts', `import { x } from 'tenure';`, '1: server may not import client'],
    ['packages/cli/src/a.ts', `import { x } from '@tenure/server';`, '1: cli may load server only with import()'],
    [
      'packages/cli/src/a.ts',
      `import { x } from '@tenure/protocol/dist/a.js';`,
      '1: import @tenure/protocol through its index, not @tenure/protocol/dist/a.js',
    ],
  ])('refuses, in %s, %s', (path, text, message) => {
    expect(check(path, text)).toEqual([message]);
  });

  test.each([
    ['packages/server/src/a.ts', `import { x } from '@tenure/core'; import { y } from '@tenure/protocol';`],
    ['packages/server/src/engines/etcd/a.ts', `import { x } from 'tenure/etcd';`],
    ['packages/cli/src/serve.ts', `const { serve } = await import('@tenure/server');`],
    ['packages/core/src/a.ts', `import BTree from 'sorted-btree'; import { x } from './b.ts';`],
    ['packages/core/src/a.test.ts', `import fc from 'fast-check';`],
    ['packages/core/src/a.test.ts', `import { x } from '@tenure/test-support';`],
    ['packages/server/src/engines/testing/a.ts', `import { x } from '@tenure/test-support';`],
    ['packages/client/src/testing/a.test.ts', `import { x } from '@tenure/test-support';`],
    ['tests/a.test.ts', `import { x } from '@tenure/server';`],
  ])('allows, in %s, %s', (path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});

describe('the rule for what tests import', () => {
  const check = (path: string, text: string) => messages(checkTestImports(source(path, text)));

  test.each(['tests/a.ts', 'conformance/a.test.ts', 'packages/server/src/a.test.ts'])(
    'refuses the assertions of Node in %s',
    (path) => {
      for (const from of ['node:assert', 'node:assert/strict', 'assert']) {
        expect(check(path, `\nimport assert from '${from}';`)).toEqual(["2: assert with vitest's expect"]);
      }
    },
  );

  test.each([
    [
      'tests/a.ts',
      `import { x } from '../packages/core/src/a.ts';`,
      '1: import core by its name, not ../packages/core/src/a.ts',
    ],
    [
      'benchmarks/a.ts',
      `import '../packages/cli/bin/a.js';`,
      '1: import cli by its name, not ../packages/cli/bin/a.js',
    ],
    [
      'packages/cli/src/a.test.ts',
      `import '../../core/src/a.ts';`,
      '1: import core by its name, not ../../core/src/a.ts',
    ],
  ])('refuses, in %s, %s', (path, text, message) => {
    expect(check(path, text)).toEqual([message]);
  });

  test.each([
    ['simulation/a.ts', `import { x } from '../packages/core/src/a.ts';`],
    ['packages/core/src/a.test.ts', `import { x } from '../../core/src/a.ts';`],
    ['packages/client/src/testing/a.ts', `import assert from 'node:assert/strict';`],
    ['tests/a.test.ts', `import { expect } from 'vitest';`],
  ])('allows, in %s, %s', (path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});

describe('the folder rule', () => {
  const check = (path: string, text: string) => messages(checkFolders(source(path, text)));

  test.each([
    ['packages/new/src/a.ts', '', '1: the package new has no row in tests/tidy/folder-rule.ts'],
    ['packages/server/src/new/a.ts', '', '1: server/new has no row in tests/tidy/folder-rule.ts'],
    [
      'packages/server/src/api/a.ts',
      `import '../../../core/src/b.ts';`,
      '1: ../../../core/src/b.ts leaves the package',
    ],
    [
      'packages/server/src/engines/file/a.ts',
      `import '../../replica/b.ts';`,
      '1: server/engines/file may not import server/replica',
    ],
    ['packages/server/src/transport/a.ts', `import '../api/b.ts';`, '1: server/transport may not import server/api'],
    ['packages/server/src/api/a.ts', `import '../engines/b.ts';`, '1: server/api may not import server/engines'],
    [
      'packages/server/src/time/a.ts',
      `import './b.ts'; import '../logging/c.ts';`,
      '1: server/time may not import server/logging',
    ],
    [
      'packages/core/src/mvcc/a.ts',
      `import type { X } from '../lease/b.ts';`,
      '1: core/mvcc may not import core/lease',
    ],
    [
      'packages/server/src/replica/a.ts',
      `import '../server.ts';`,
      '1: server/replica may not import server.ts, which puts the parts together',
    ],
  ])('refuses, in %s, %s', (path, text, message) => {
    expect(check(path, text)).toEqual([message]);
  });

  test.each([
    ['packages/server/src/server.ts', `import './api/a.ts'; import './engines/b.ts';`],
    ['packages/server/src/api/a.ts', `import '../replica/b.ts'; import '../version.ts'; import 'pino';`],
    ['packages/server/src/engines/file/a.test.ts', `import '../../replica/b.ts';`],
    ['tests/a.ts', `import '../packages/server/src/server.ts';`],
  ])('allows, in %s, %s', (path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});

describe('the circle rule', () => {
  const files = (c: string) => [
    source('x/a.ts', `import type { B } from './b/b.ts';`),
    source('x/b/b.ts', `import { c } from '../c.ts';`),
    source('x/c.ts', c),
  ];

  test('tells a circle, of types too, with the way around', () => {
    expect(messages(checkCircles(files(`import type { A } from './a.ts';`)))).toEqual([
      '1: imports in a circle: x/a.ts > x/b/b.ts > x/c.ts > x/a.ts',
    ]);
  });

  test('allows a file that several import, and one that is loaded on demand', () => {
    expect(messages(checkCircles(files(`const { a } = await import('./a.ts'); import { d } from './d.ts';`)))).toEqual(
      [],
    );
  });
});

describe('the purity rule', () => {
  const check = (text: string, path = 'packages/core/src/a.ts') => messages(checkCorePurity(source(path, text)));

  test.each([
    'Date.now()',
    'new Date()',
    'Math.random()',
    'performance.now()',
    'crypto.randomUUID()',
    'setTimeout(f, 1)',
    'setInterval(f, 1)',
    'setImmediate(f)',
    'process.env',
    'Buffer.alloc(1)',
    'console.log(1)',
  ])('refuses %s', (expression) => {
    expect(check(`export const f = () => ${expression};`)).toHaveLength(1);
  });

  test('refuses the modules of Node', () => {
    expect(check(`import { x } from 'node:fs';`)).toEqual(['1: core may not import node:fs']);
    expect(check(`const fs = await import('node:fs');`)).toEqual(['1: core may not import node:fs']);
  });

  test('allows other members of Math, properties of such names, tests, and the other packages', () => {
    expect(check('export const x = Math.max(1, 2);')).toEqual([]);
    expect(check('export const x = entry.process; export const y = { performance: 1 };')).toEqual([]);
    expect(check('// Date and Math.random are not used here\nexport const x = 1;')).toEqual([]);
    expect(check('export const x = Date.now();', 'packages/core/src/a.test.ts')).toEqual([]);
    expect(check('export const x = Date.now();', 'packages/server/src/a.ts')).toEqual([]);
  });
});

describe('the rule of handed time', () => {
  const check = (text: string, path = 'packages/server/src/replica/a.ts') =>
    messages(checkHandedTime(source(path, text)));

  test.each([
    'Date.now()',
    'performance.now()',
    'setTimeout(f, 1)',
    'setInterval(f, 1)',
    'setImmediate(f)',
    'process.nextTick(f)',
    'Math.random()',
    'randomBytes(4)',
    'crypto.randomUUID()',
  ])('refuses %s', (expression) => {
    expect(check(`export const f = () => ${expression};`)).toHaveLength(1);
  });

  test('refuses the clock of the process, and timers under another name', () => {
    expect(check(`import { systemClock } from '../time/system-clock.ts';`)).toHaveLength(1);
    expect(check(`import { setTimeout as delay } from 'node:timers/promises';`)).toHaveLength(2);
  });

  test('holds where the simulator runs, and not in tests or the transport', () => {
    const timer = 'setTimeout(f, 1);';
    for (const path of [
      'server.ts',
      'cluster/a.ts',
      'leadership/a.ts',
      'leases/a.ts',
      'api/a.ts',
      'watch/a.ts',
      'engines/file/a.ts',
    ]) {
      expect(check(timer, `packages/server/src/${path}`), path).toHaveLength(1);
    }
    expect(check(timer, 'packages/client/src/etcd/client/a.ts')).toHaveLength(1);
    for (const path of ['replica/a.test.ts', 'transport/a.ts', 'engines/postgres/a.ts', 'serve.ts']) {
      expect(check(timer, `packages/server/src/${path}`), path).toEqual([]);
    }
  });

  test('refuses the files of this machine in the file engine', () => {
    const open = `import * as fs from 'node:fs';`;
    expect(check(open, 'packages/server/src/engines/file/a.ts')).toHaveLength(1);
    expect(check(`import { rm } from 'node:fs/promises';`, 'packages/server/src/engines/file/a.ts')).toHaveLength(1);
    expect(check(open, 'packages/server/src/engines/file/node-file-system.ts')).toEqual([]);
    expect(check(open, 'packages/server/src/engines/file/a.test.ts')).toEqual([]);
    expect(check(open, 'packages/server/src/replica/a.ts')).toEqual([]);
  });

  test('allows what is handed over, and what a file is let have for a reason', () => {
    expect(check(`import type { Clock } from '../time/clock.ts'; clock.after(1, f); random.bytes(4);`)).toEqual([]);
    const lock = 'packages/server/src/engines/file/folder-lock.ts';
    expect(check('randomBytes(8);', lock)).toEqual([]);
    expect(check('setInterval(f, 1);', lock)).toHaveLength(1);
  });
});

describe('the size rule', () => {
  const check = (text: string, path = 'packages/core/src/a.ts') => messages(checkSizes(source(path, text)));
  const statements = (count: number) => 'f();\n'.repeat(count);

  test('refuses a file of more than 500 lines, and one of more than 400 that gives no reason', () => {
    expect(check(statements(400))).toEqual([]);
    expect(check(statements(401))).toHaveLength(1);
    expect(check(`// Reason for length: one table.\n${statements(450)}`)).toEqual([]);
    expect(check(`// Reason for length: one table.\n${statements(500)}`)).toHaveLength(1);
    expect(check(statements(900), 'packages/core/src/a.gen.ts')).toEqual([]);
  });

  test('refuses a function, a method or an arrow function of more than 70 lines', () => {
    const body = (lines: number) => `{\n${statements(lines - 2)}}`;
    for (const head of ['function f() ', 'const f = () => ', 'const f = function () ']) {
      expect(check(head + body(70)), head).toEqual([]);
      expect(check(head + body(71)), head).toEqual(['1: f has 71 lines, 70 at most']);
    }
    expect(check(`class C {\n  m() ${body(71)}\n}`)).toEqual(['2: m has 71 lines, 70 at most']);
    expect(check(`function describeClient() ${body(90)}`)).toEqual([]);
    expect(check(`describe('x', () => ${body(90)});\ndescribe.each(y)('x', () => ${body(90)});`)).toEqual([]);
    expect(check(`it('x', () => ${body(90)});`)).toHaveLength(1);
  });

  test('refuses a line of more than 120 columns, unless it is an address', () => {
    expect(check(`// ${'x'.repeat(117)}`)).toEqual([]);
    expect(check(`\n// ${'x'.repeat(118)}`)).toEqual(['2: 121 columns, 120 at most']);
    expect(check(`// https://example.com/${'x'.repeat(118)}`)).toEqual([]);
  });
});

describe('the rule against any', () => {
  test('refuses the type and not the word', () => {
    const found = (text: string) => messages(checkAny(source('packages/core/src/a.ts', text)));
    expect(found('const x = y as any;')).toEqual(['1: use unknown and narrow it']);
    expect(found('\nfunction f(x: any): Map<string, any> {}')).toHaveLength(2);
    expect(found('// as good as any\nconst any = 1;')).toEqual([]);
  });
});

describe('the naming rule', () => {
  const check = (path: string, text: string, others: string[] = []) =>
    messages(checkNames(source(path, text), new Set([path, ...others])));

  test.each([
    ['packages/core/src/leaseStore.ts', 'export class LeaseStore {}', 'file names are kebab-case'],
    ['packages/core/src/utils/lease.ts', 'export class Lease {}', 'name the folder after its contents'],
    ['packages/core/src/lease-part2.ts', 'export class Lease {}', 'split by noun, not into numbered parts'],
    ['packages/core/src/watch.ts', 'export class A {}', 'named after nothing that it exports (A)'],
    [
      'packages/core/src/watch.ts',
      'export class Watch {}\nexport class Hub {}',
      'one exported noun a file, here are Watch, Hub',
    ],
    ['packages/core/src/a.test.ts', '', 'no source file beside this test: move it, or into tests/'],
    [
      'packages/core/src/codec.ts',
      '// @generated by a tool\nexport class Codec {}',
      'a generated file ends in .gen.ts and its head says that it is generated; no other file does either',
    ],
  ])('refuses %s with %j', (path, text, message) => {
    expect(check(path, text)).toEqual([`1: ${message}`]);
  });

  test.each([
    ['packages/core/src/kv-types.ts', 'export interface KeyValue {}\nexport type KvEvent = 1;'],
    ['packages/core/src/lease-error.ts', 'export class LeaseError {}\nexport class GoneError {}'],
    ['packages/server/src/range-codec.ts', 'export function encodeRange() {}\nexport function decodeRange() {}'],
    ['packages/server/src/transport/transport.ts', 'export type Call = 1;'],
    ['packages/core/src/codec_v1.gen.ts', '// @generated by a tool\nexport class A {}'],
    ['packages/server/src/recovery.ts', 'export interface State {}\nexport function recover() {}'],
    ['packages/server/src/shapes.ts', 'export interface Put {}\nexport type Range = 1;'],
    ['packages/core/src/index.ts', `export { A } from './a.ts';\nexport { B } from './b.ts';`],
  ])('allows %s with %j', (path, text) => {
    expect(check(path, text)).toEqual([]);
  });

  test('finds the source that stands beside a test', () => {
    expect(check('packages/core/src/a/b.test.ts', '', ['packages/core/src/a/b.ts'])).toEqual([]);
    expect(check('packages/core/src/a/b.property.test.ts', '', ['packages/core/src/a/b.ts'])).toEqual([]);
    expect(check('packages/core/src/a/b.test.ts', '', ['packages/core/src/b.ts'])).toHaveLength(1);
  });
});

describe('the markdown rule', () => {
  const paths = new Set(['docs/a.md', 'docs/deep/b.md', 'packages/core/src/a.ts']);
  const check = (text: string) => messages(checkMarkdown({ path: 'docs/a.md', text }, paths));

  test('wants one title, and takes no comment in a code block for one', () => {
    expect(check('# One\n\ntext\n')).toEqual([]);
    expect(check('text\n')).toEqual(['1: 0 titles, 1 wanted']);
    expect(check('# One\n\n# Two\n')).toEqual(['1: 2 titles, 1 wanted']);
    expect(check('# One\n\n```\n# a comment\n```\n')).toEqual([]);
  });

  test('refuses links and names of files that do not exist', () => {
    expect(
      check('# A\n[b](deep/b.md) [b](./deep/b.md#x) [up](../packages/core) [web](https://x.y/z) [here](#x)'),
    ).toEqual([]);
    expect(check('# A\n\n[b](b.md)')).toEqual(['3: b.md does not exist']);
    expect(check('# A\n`packages/core/src/a.ts` and `packages/core/`')).toEqual([]);
    expect(check('# A\n`packages/core/src/gone.ts`')).toEqual(['2: packages/core/src/gone.ts does not exist']);
  });

  test('refuses comments that point to a document that is not there', () => {
    const found = (text: string) => messages(checkDocumentsNamed(source('packages/core/src/a.ts', text), paths));
    expect(found('// See docs/a.md.')).toEqual([]);
    expect(found('\n// See gone.md.')).toEqual(['2: gone.md is not in the repository']);
  });
});

describe('the packages rule', () => {
  const manifest = (content: object) => ({
    path: 'packages/core/package.json',
    text: JSON.stringify(content, null, 2),
  });
  const code = [source('packages/core/src/a.ts', `import BTree from 'sorted-btree';`)];

  test('wants every dependency used, declared and documented', () => {
    const right = manifest({ name: '@tenure/core', dependencies: { 'sorted-btree': '1' } });
    expect(checkPackages([right], code, '- `sorted-btree`: trees')).toEqual([]);
    expect(messages(checkPackages([right], code, ''))).toEqual(['4: sorted-btree has no line in docs/dependencies.md']);
    expect(messages(checkPackages([right], [], '`sorted-btree`'))).toEqual([
      '4: sorted-btree is declared and never imported',
    ]);
    expect(messages(checkPackages([manifest({ name: '@tenure/core' })], code, ''))).toEqual([
      `1: sorted-btree is not among the package's dependencies`,
    ]);
  });
});

describe('the lockfile rule', () => {
  test('wants an entry for every optional dependency', () => {
    const owner = { optionalDependencies: { '@x/linux': '1.0.0', '@x/darwin': '1.0.0' } };
    const check = (packages: object) => messages(checkLockfile('package-lock.json', JSON.stringify({ packages })));
    const linux = { 'node_modules/@x/linux': { version: '1.0.0' } };
    expect(check({ 'node_modules/x': owner, ...linux })).toEqual(['1: @x/darwin@1.0.0 has no entry']);
    expect(check({ 'node_modules/x': owner, ...linux, 'node_modules/x/node_modules/@x/darwin': {} })).toEqual([]);
  });
});

describe('the search for dead exports', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  function project(files: Record<string, string>): string {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-tidy-'));
    folders.push(folder);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return folder;
  }

  test('finds an export and a file that nothing imports', async () => {
    const found = await findDeadExports(
      project({
        'package.json': '{ "name": "x", "type": "module" }',
        'knip.json': '{ "entry": ["src/index.ts"], "project": ["src/**"] }',
        'src/index.ts': `import { used } from './a.ts';\nused();\n`,
        'src/a.ts': 'export function used() {}\nexport function dead() {}\n',
        'src/b.ts': 'export const alone = 1;\n',
      }),
    );
    expect(found.map(({ path, message }) => `${path}: ${message}`).toSorted()).toEqual([
      'src/a.ts: dead is exported and nothing imports it',
      'src/b.ts: nothing imports this file',
    ]);
  });
});

describe('the list of files', () => {
  test('leaves out what is built, installed or hidden', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-tidy-'));
    for (const path of ['a.ts', 'b/c.md', 'node_modules/x/d.ts', 'dist/e.ts', '.git/f.md', '.ci/run', 'g.bin']) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), 'text');
    }
    expect(repositoryFiles(folder).map(({ path }) => path)).toEqual(['.ci/run', 'a.ts', 'b/c.md']);
    rmSync(folder, { recursive: true, force: true });
  });

  test('counts lines from 1', () => {
    expect([0, 1, 2, 3].map((offset) => lineAt('a\nb\n', offset))).toEqual([1, 1, 2, 2]);
  });
});
