import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { etcdProgram } from '@tenure/test-support';

const moduleFolder = fileURLToPath(new URL('../../etcd/', import.meta.url));
/** Where npm packages keep what they build: it goes with node_modules. */
const cacheFolder = fileURLToPath(new URL('../../../node_modules/.cache/tenure-benchmarks/', import.meta.url));
const moduleFiles = ['go.mod', 'go.sum', 'main.go'] as const;
/** What tests start unless TENURE_TEST_ETCD names another. */
const installedEtcd = 'etcd';
/** Go installs itself here and leaves the PATH to the user. */
const usualGo = '/usr/local/go/bin/go';
const buildTimeoutMs = 15 * 60_000;
/** etcd's own load generator, a `tool` of the module. */
const generatorPackage = 'go.etcd.io/etcd/v3/tools/benchmark';

/** The etcd that Tenure is compared with. */
export interface EtcdPeer {
  readonly program: string;
  /** Which one it is, for the report. */
  readonly origin: string;
  /** etcd's own load generator; undefined without Go. */
  readonly generator?: string;
}

interface BuiltPrograms {
  readonly etcd: string;
  readonly generator: string;
}

let chosen: EtcdPeer | undefined;

/**
 * The etcd named by TENURE_TEST_ETCD; else the one of `benchmarks/etcd`, built once if Go is installed; else the
 * installed one, which may be much older.
 */
export function etcdPeer(): EtcdPeer {
  chosen ??= choosePeer();
  return chosen;
}

function choosePeer(): EtcdPeer {
  const built = builtPrograms();
  const generator = typeof built === 'string' ? {} : { generator: built.generator };
  if (etcdProgram !== installedEtcd) return { program: etcdProgram, origin: 'named by TENURE_TEST_ETCD', ...generator };
  if (typeof built === 'string') return { program: installedEtcd, origin: `the installed one, since ${built}` };
  return { program: built.etcd, origin: 'built from the Go module proxy', ...generator };
}

/** Both programs, or the reason why there are none. */
function builtPrograms(): BuiltPrograms | string {
  const go = goProgram();
  if (go === undefined) return 'Go is not installed';
  try {
    const version = execFileSync(go, ['version'], { encoding: 'utf8', cwd: moduleFolder });
    const hash = createHash('sha256').update(version);
    for (const file of moduleFiles) hash.update(readFileSync(join(moduleFolder, file)));
    const folder = join(cacheFolder, hash.digest('hex').slice(0, 16));
    mkdirSync(folder, { recursive: true });
    return { etcd: build(go, '.', join(folder, 'etcd')), generator: build(go, generatorPackage, join(folder, 'load')) };
  } catch (error) {
    console.error(`etcd was not built: ${error instanceof Error ? error.message : String(error)}`);
    return 'its build failed';
  }
}

/** Builds into another name first, so that an interrupted build leaves no half program. */
function build(go: string, what: string, program: string): string {
  if (existsSync(program)) return program;
  console.log(`building ${what === '.' ? 'etcd' : what} with Go, once: takes a minute or two`);
  const partial = `${program}.${process.pid}`;
  execFileSync(go, ['build', '-trimpath', '-o', partial, what], {
    cwd: moduleFolder,
    timeout: buildTimeoutMs,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  renameSync(partial, program);
  return program;
}

function goProgram(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return [...folders.map((folder) => join(folder, 'go')), usualGo].find((path) => existsSync(path));
}
