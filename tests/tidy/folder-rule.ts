import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

type Folders = Readonly<Record<string, readonly string[]>>;

/**
 * Every folder of every package, and the folders of its package that it may import. Files directly in `src` compose the
 * folders: they import any of them, and no folder imports these files, except those in `sharedFiles`.
 */
const folders: Readonly<Record<string, Folders>> = {
  protocol: { errors: [], gen: [] },
  core: {
    mvcc: [],
    lease: ['mvcc'],
    auth: ['lease', 'mvcc'],
    watch: ['mvcc'],
    snapshot: ['auth', 'lease', 'mvcc', 'state-machine'],
    'state-machine': ['auth', 'lease', 'mvcc', 'snapshot'],
  },
  codec: {},
  'test-support': { clocks: [], etcd: [], grpc: ['http2'], http2: [], postgres: [] },
  'grpc-client': {},
  'grpc-server': {
    hpack: [],
    http2: ['hpack'],
    limits: ['http2'],
    calls: ['http2', 'limits'],
    http1: ['calls', 'limits'],
    listener: ['calls', 'http1', 'http2', 'limits'],
  },
  server: {
    time: [],
    random: [],
    tls: ['random', 'time'],
    config: ['tls'],
    logging: ['config'],
    transport: ['tls'],
    auth: ['config', 'random', 'replica', 'time', 'transport'],
    watch: ['random', 'time', 'transport'],
    http: ['logging', 'transport'],
    // From requests over HTTP to calls of the routes: it knows no service.
    gateway: ['transport'],
    leases: ['random', 'time'],
    leadership: ['leases', 'random', 'replica', 'time'],
    // Loaded on demand, by the address of the log.
    engines: ['engines/etcd', 'engines/postgres'],
    'engines/etcd': ['engines'],
    'engines/file': ['engines', 'random', 'time'],
    'engines/memory': ['engines'],
    'engines/postgres': ['engines'],
    replica: ['config', 'engines', 'random', 'time'],
    api: ['auth', 'config', 'leases', 'random', 'replica', 'time', 'transport'],
    concurrency: ['api', 'replica', 'transport'],
    'cluster/link': ['config', 'random', 'time'],
    'cluster/leader': ['api', 'cluster/link', 'config', 'random', 'replica', 'time', 'transport'],
    'cluster/follower': [
      'api',
      'cluster/link',
      'config',
      'engines',
      'leases',
      'random',
      'replica',
      'time',
      'transport',
    ],
    cluster: [
      'api',
      'cluster/follower',
      'cluster/leader',
      'cluster/link',
      'engines',
      'leadership',
      'random',
      'replica',
      'time',
      'transport',
    ],
    operator: ['auth', 'engines', 'engines/file', 'random', 'replica', 'time'],
  },
  cli: {
    output: [],
    completion: [],
    // An operation of a transaction takes the flags of the command with the same name.
    txn: ['commands'],
    commands: ['completion', 'output', 'txn'],
  },
  client: {
    errors: [],
    random: [],
    time: [],
    diagnostics: [],
    backend: ['time'],
    leases: ['backend', 'diagnostics', 'errors', 'random', 'time'],
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
    etcd: ['backend', 'errors', 'etcd/client', 'etcd/connection', 'random', 'time'],
  },
};

/** Files directly in `src` that folders may import: they compose nothing. */
const sharedFiles: Readonly<Record<string, RegExp>> = {
  core: /^core-error\.ts$/,
  server: /^version\.ts$/,
  'test-support': /^/,
  cli: /^(?!main\.ts$|program\.ts$|index\.ts$)/,
};

/**
 * Imports between the folders of a package have the direction given in ARCHITECTURE.md, and each folder has a row here.
 */
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
