import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

type Folders = Readonly<Record<string, readonly string[]>>;

/**
 * Every folder of every package, and which folders of its package it may import. What lies directly in `src` puts the
 * folders together: it imports what it likes, and no folder imports it, but for the files in `sharedFiles`.
 */
const folders: Readonly<Record<string, Folders>> = {
  protocol: { errors: [], gen: [] },
  core: {
    mvcc: [],
    lease: ['mvcc'],
    watch: ['mvcc'],
    snapshot: ['lease', 'mvcc', 'state-machine'],
    'state-machine': ['lease', 'mvcc', 'snapshot'],
  },
  codec: {},
  'test-support': { clocks: [], etcd: [], postgres: [] },
  'grpc-client': {},
  server: {
    time: [],
    random: [],
    config: [],
    logging: ['config'],
    transport: [],
    watch: ['random', 'time', 'transport'],
    http: ['logging', 'transport'],
    leases: ['random', 'time'],
    election: ['leases', 'random', 'time'],
    // Loaded on demand, by the address of the log.
    engines: ['engines/etcd', 'engines/postgres'],
    'engines/etcd': ['engines'],
    'engines/file': ['engines', 'random', 'time'],
    'engines/memory': ['engines'],
    'engines/postgres': ['engines'],
    replica: ['config', 'engines', 'random', 'time'],
    api: ['config', 'leases', 'random', 'replica', 'time', 'transport'],
    cluster: ['api', 'config', 'election', 'engines', 'leases', 'random', 'replica', 'time', 'transport'],
    operator: ['engines', 'engines/file', 'random', 'replica', 'time'],
  },
  cli: {
    output: [],
    completion: [],
    // An operation of a transaction takes the flags of the command of its name.
    txn: ['commands'],
    commands: ['completion', 'output', 'txn'],
  },
  client: {
    errors: [],
    time: [],
    diagnostics: [],
    backend: ['time'],
    leases: ['backend', 'diagnostics', 'errors', 'time'],
    guard: ['errors', 'leases'],
    locks: ['errors', 'leases'],
    election: ['backend', 'errors', 'leases', 'time'],
    membership: ['backend', 'errors', 'leases', 'time'],
    memory: ['backend', 'errors', 'time'],
    mysql: ['backend', 'errors', 'time'],
    postgres: ['backend', 'errors', 'time'],
    sqlite: ['backend', 'errors', 'time'],
    dynamodb: ['backend', 'errors', 'time'],
    'etcd/connection': ['errors', 'time'],
    'etcd/client': ['etcd/connection', 'time'],
    etcd: ['backend', 'errors', 'etcd/client', 'etcd/connection', 'time'],
  },
};

/** Files directly in `src` that folders may import: they put nothing together. */
const sharedFiles: Readonly<Record<string, RegExp>> = {
  core: /^core-error\.ts$/,
  server: /^version\.ts$/,
  'test-support': /^/,
  cli: /^(?!main\.ts$|program\.ts$|index\.ts$)/,
};

/** Imports between the folders of a package go the way that ARCHITECTURE.md says, and each folder has its row here. */
export function checkFolders({ path, imports }: ParsedSource): Violation[] {
  const match = /^packages\/([^/]+)\/src\/(.+)$/.exec(path);
  if (match === null || isTestCode(path)) return [];
  const [, name = '', file = ''] = match;
  const own = folderOf(file);
  const violation = (line: number, message: string): Violation => ({ path, line, rule: 'folders', message });
  const known = folders[name];
  if (known === undefined) return [violation(1, `the package ${name} has no row in tests/tidy/folder-rule.ts`)];
  if (own === '') return [];
  const allowed = known[own];
  if (allowed === undefined) return [violation(1, `${name}/${own} has no row in tests/tidy/folder-rule.ts`)];
  return imports.flatMap(({ from, line }) => {
    if (!from.startsWith('.')) return [];
    const target = posix.relative(`packages/${name}/src`, posix.join(posix.dirname(path), from));
    if (target.startsWith('..')) return [violation(line, `${from} leaves the package`)];
    const folder = folderOf(target);
    if (folder === own || allowed.includes(folder)) return [];
    if (folder !== '') return [violation(line, `${name}/${own} may not import ${name}/${folder}`)];
    if (sharedFiles[name]?.test(target)) return [];
    return [violation(line, `${name}/${own} may not import ${target}, which puts the parts together`)];
  });
}

function folderOf(file: string): string {
  const folder = posix.dirname(file);
  return folder === '.' ? '' : folder;
}
