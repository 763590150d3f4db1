import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

/** Code that runs under a simulated clock: it waits, measures and draws random numbers only through its arguments. */
const handed: readonly RegExp[] = [
  /^packages\/server\/src\/(api-server|server)\.ts$/,
  /^packages\/server\/src\/(api|auth|cluster|concurrency|leadership|leases|replica|watch)\//,
  /^packages\/server\/src\/engines\/((file|memory)\/)?[^/]+\.ts$/,
  /^packages\/client\/src\/(lease-manager|load-balanced)\.ts$/,
  /^packages\/client\/src\/(diagnostics|election|etcd|leases|locks|membership|memory|time)\//,
];

const takeClock = 'take a Clock as an argument';
const takeRandom = 'take random numbers as an argument';

const bannedNames: ReadonlyMap<string, string> = new Map([
  ['setTimeout', takeClock],
  ['setInterval', takeClock],
  ['setImmediate', takeClock],
  ['process.nextTick', takeClock],
  ['performance', takeClock],
  ['Date', takeClock],
  ['process.hrtime', takeClock],
  ['Math.random', takeRandom],
  ['randomBytes', takeRandom],
  ['randomInt', takeRandom],
  ['randomUUID', takeRandom],
  ['crypto', takeRandom],
]);

/** The clocks and the randomness of the process: for those who put the parts together. */
const bannedImports = /^node:timers|\/(system-clock|system-random)\.ts$/;

/** Code that runs on a simulated disk: it reads and writes files only through its arguments. */
const handedFiles = /^packages\/server\/src\/engines\/file\/[^/]+\.ts$/;
const bannedFileImports = /^node:fs(\/promises)?$|\/node-file-system\.ts$/;

interface Exception {
  readonly names: readonly string[];
  readonly reason: string;
}

const exceptions: Readonly<Record<string, Exception>> = {
  'packages/server/src/engines/file/folder-lock.ts': {
    names: ['setTimeout', 'Math.random', 'randomBytes', 'node:timers/promises', 'node:fs', './node-file-system.ts'],
    reason: 'it asks other processes through the kernel, which no clock of this one drives',
  },
  'packages/server/src/engines/file/node-file-system.ts': {
    names: ['node:fs'],
    reason: 'it is the file system of the machine',
  },
  'packages/server/src/engines/file/file-engine.ts': {
    names: ['../../time/system-clock.ts', '../../random/system-random.ts', './node-file-system.ts'],
    reason: 'they are what its options are by default',
  },
  'packages/server/src/engines/file/log-truncation.ts': {
    names: ['../../random/system-random.ts', 'node:fs', './node-file-system.ts'],
    reason: 'a command of the operator, beside any server',
  },
  'packages/server/src/engines/file/log-inspection.ts': {
    names: ['./node-file-system.ts'],
    reason: 'a command of the operator, beside any server',
  },
  'packages/server/src/engines/file/seeded-folder.ts': {
    names: ['./node-file-system.ts'],
    reason: 'a command of the operator, beside any server',
  },
  'packages/client/src/etcd/connection/etcd-connection.ts': {
    names: ['../../time/system-clock.ts'],
    reason: 'programs that give no clock have this one',
  },
  'packages/client/src/etcd/client/etcd-client.ts': {
    names: ['../../time/system-clock.ts'],
    reason: 'programs that give no clock have this one',
  },
  'packages/client/src/etcd/etcd-backend.ts': {
    names: ['../time/system-clock.ts', '../random/system-random.ts'],
    reason: 'programs give neither, so both are chosen here',
  },
  'packages/client/src/lease-manager.ts': {
    names: ['./time/system-clock.ts', './random/system-random.ts'],
    reason: 'programs that give no clock have this one, and none gives random numbers',
  },
  'packages/client/src/memory/memory-backend.ts': {
    names: ['../time/system-clock.ts'],
    reason: 'programs that give no clock have this one',
  },
  'packages/client/src/time/system-clock.ts': {
    names: ['setTimeout', 'performance', 'Date'],
    reason: 'it is the clock of the process',
  },
  'packages/client/src/time/process-ref.ts': {
    names: ['setInterval'],
    reason: 'only a pending timer keeps a process alive, and with another clock than that of the process it sets none',
  },
  'packages/client/src/leases/release-signals.ts': {
    names: ['setImmediate'],
    reason: 'it ends the process, outside of any manager',
  },
};

/** Time, randomness and files are arguments, so that a simulator can run this code unchanged. */
export function checkHandedTime(source: ParsedSource): Violation[] {
  if (isTestCode(source.path) || !handed.some((folder) => folder.test(source.path))) return [];
  const allowed = exceptions[source.path]?.names ?? [];
  const refused = (line: number, message: string): Violation => ({
    path: source.path,
    line,
    rule: 'handed time',
    message,
  });
  const isBanned = (from: string): boolean =>
    bannedImports.test(from) || (handedFiles.test(source.path) && bannedFileImports.test(from));
  const imports = source.imports
    .filter(({ from, isTypeOnly }) => !isTypeOnly && isBanned(from) && !allowed.includes(from))
    .map(({ from, line }) => refused(line, `${from} may not be imported here: take it as an argument`));
  const names = source.names
    .filter(({ name }) => bannedNames.has(name) && !allowed.includes(name))
    .map(({ name, line }) => refused(line, `${name} is banned here: ${bannedNames.get(name)}`));
  return [...imports, ...names];
}
