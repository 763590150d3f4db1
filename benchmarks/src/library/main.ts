// npm run bench -- library: the library on each of its backends, compared with others on the same stores.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { postgresVersion } from '@tenure/test-support';
import { percentile } from '../load/percentile.ts';
import { etcdPeer } from '../servers/etcd-peer.ts';
import { libraryTable, writeLibraryReport } from './library-report.ts';
import type { LibraryResult, LibraryRun } from './library-result.ts';
import type { Locker, LockLibrary } from './lock-library.ts';
import { measureHolding } from './measure-holding.ts';
import { measureTurns } from './measure-turns.ts';
import { measureWakeUps } from './measure-wake-ups.ts';
import { peerLibraries } from './peer-libraries.ts';
import { tenureLibraries } from './tenure-libraries.ts';

interface Sizes {
  readonly turnsMs: number;
  readonly wakeUps: number;
  readonly wakeUpsMs: number;
  readonly locks: number;
  readonly holdMs: number;
}

const fullSizes: Sizes = { turnsMs: 2_000, wakeUps: 30, wakeUpsMs: 12_000, locks: 1_000, holdMs: 12_000 };
const quickSizes: Sizes = { turnsMs: 200, wakeUps: 2, wakeUpsMs: 3_000, locks: 50, holdMs: 1_000 };
const atOnce = 32;
/** Of waiters, so that nothing is renewed or expires in a measurement. */
const longTtlMs = 60_000;
/** Of held locks: each is renewed three times while it is measured. */
const heldTtlMs = 12_000;

async function measure(library: LockLibrary, sizes: Sizes): Promise<LibraryResult> {
  const { name, store: storeName, counted } = library;
  const store = await library.start();
  const lockers: Locker[] = [];
  const open = async (ttlMs: number): Promise<Locker> => {
    const locker = await store.open({ ttlMs });
    lockers.push(locker);
    return locker;
  };
  try {
    const [first, second, holder] = [await open(longTtlMs), await open(longTtlMs), await open(heldTtlMs)];
    const one = await measureTurns(first, { atOnce: 1, forMs: sizes.turnsMs });
    const many = await measureTurns(first, { atOnce, forMs: sizes.turnsMs });
    const limits = { count: sizes.wakeUps, withinMs: sizes.wakeUpsMs };
    const wakeUps = await measureWakeUps([first, second], limits);
    const { cpuMs, requests } = await measureHolding(store, holder, { locks: sizes.locks, forMs: sizes.holdMs });
    return {
      ...{ name, store: storeName, counted },
      turns: { one, many },
      wakeUpMs: { p50: percentile(wakeUps, 0.5), p99: percentile(wakeUps, 0.99), count: wakeUps.length },
      holding: { cpuMs, requestsPerLock: requests },
    };
  } finally {
    for (const locker of lockers) await locker.close();
    await store.stop();
  }
}

async function main(): Promise<number> {
  const options = { only: { type: 'string', default: '' }, quick: { type: 'boolean', default: false } } as const;
  const { values } = parseArgs({ options });
  const all = [...tenureLibraries, ...peerLibraries];
  const parts = values.only.split(',');
  const chosen = all.filter(({ name, store }) => parts.some((part) => `${name} ${store}`.includes(part)));
  if (chosen.length === 0) throw new Error(`no library is named ${values.only}`);
  // A wait for a lease does not keep the process alive, and an in-process driver opens no handle that would.
  const alive = setInterval(() => undefined, 60_000);
  const loadBefore = load();
  const results: LibraryResult[] = [];
  let failures = 0;
  for (const library of chosen) {
    try {
      const result = await measure(library, values.quick ? quickSizes : fullSizes);
      results.push(result);
      console.log(JSON.stringify(result));
    } catch (error) {
      failures += 1;
      console.error(`${library.name} on ${library.store} failed:`, error);
    }
  }
  clearInterval(alive);
  const run: LibraryRun = { ...describeRun(), loadBefore, loadAfter: load(), results };
  console.log(`\n${libraryTable(run)}`);
  // A quick or partial run only shows that the benchmark works; its results are not stored.
  if (!values.quick && results.length === all.length) writeLibraryReport(run);
  return failures === 0 ? 0 : 1;
}

function load(): number {
  return Number((loadavg()[0] ?? 0).toFixed(1));
}

function describeRun(): Omit<LibraryRun, 'results' | 'loadBefore' | 'loadAfter'> {
  const programs = [
    `etcd ${versionOf(etcdPeer().program, /Version: (\S+)/)}`,
    `PostgreSQL ${postgresVersion()}`,
    `MariaDB ${versionOf('/usr/sbin/mariadbd', /Ver (\d[\d.]*)/)}`,
    `Redis ${versionOf('redis-server', /v=(\S+)/)}`,
    ...['redlock', 'redis-semaphore', 'etcd3', 'libsql', 'dynalite'].map((name) => `${name} ${packageVersion(name)}`),
  ];
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    node: process.version,
    versions: programs.join(', '),
  };
}

function versionOf(program: string, pattern: RegExp): string {
  return pattern.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1] ?? 'unknown';
}

function packageVersion(name: string): string {
  const require = createRequire(import.meta.url);
  const paths = require.resolve.paths(name) ?? [];
  for (const path of paths) {
    try {
      const text = readFileSync(join(path, name, 'package.json'), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch {
      continue;
    }
  }
  throw new Error(`${name} is not installed in ${dirname(paths[0] ?? '')}`);
}

process.exitCode = await main();
