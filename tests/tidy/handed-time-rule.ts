import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

/** What runs under a simulated clock: these wait, measure and draw lots by what they are handed. */
const handed: readonly RegExp[] = [
  /^packages\/server\/src\/(front-door|server)\.ts$/,
  /^packages\/server\/src\/(api|cluster|election|leases|replica|watch)\//,
  /^packages\/server\/src\/engines\/((file|memory)\/)?[^/]+\.ts$/,
  /^packages\/client\/src\/etcd\//,
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
const bannedImports = /^node:timers|\/(system-clock|background-clock|system-random)\.ts$/;

interface Exception {
  readonly names: readonly string[];
  readonly reason: string;
}

const exceptions: Readonly<Record<string, Exception>> = {
  'packages/server/src/engines/file/folder-lock.ts': {
    names: ['setTimeout', 'Math.random', 'randomBytes', 'node:timers/promises'],
    reason: 'it asks other processes through the kernel, whom no clock of this one moves',
  },
  'packages/server/src/engines/file/file-engine.ts': {
    names: ['../../time/background-clock.ts', '../../random/system-random.ts'],
    reason: 'they are what its options are by default',
  },
  'packages/server/src/engines/file/log-truncation.ts': {
    names: ['../../random/system-random.ts'],
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
    names: ['../time/system-clock.ts', 'crypto'],
    reason: 'programs give no clock, so it is chosen here; and the ids of leases have only to differ',
  },
};

/** Time and chance come in as arguments, so that a simulator can run these parts as they are. */
export function checkHandedTime(source: ParsedSource): Violation[] {
  if (isTestCode(source.path) || !handed.some((folder) => folder.test(source.path))) return [];
  const allowed = exceptions[source.path]?.names ?? [];
  const refused = (line: number, message: string): Violation => ({
    path: source.path,
    line,
    rule: 'handed time',
    message,
  });
  const imports = source.imports
    .filter(({ from, isTypeOnly }) => !isTypeOnly && bannedImports.test(from) && !allowed.includes(from))
    .map(({ from, line }) => refused(line, `${from} may not be imported here: take it as an argument`));
  const names = source.names
    .filter(({ name }) => bannedNames.has(name) && !allowed.includes(name))
    .map(({ name, line }) => refused(line, `${name} is banned here: ${bannedNames.get(name)}`));
  return [...imports, ...names];
}
