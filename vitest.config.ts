import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { SlowestFirst } from './tests/harness/slowest-first.ts';

/** Packages are imported by name in tests and resolve to their sources, so that unit tests need no build. */
const packageNames = ['protocol', 'core', 'codec', 'grpc-client', 'grpc-server', 'server', 'cli', 'test-support'];
const source = (path: string): string => fileURLToPath(new URL(`./packages/${path}`, import.meta.url));
const alias = [
  ...packageNames.map((name) => ({ find: `@tenure/${name}`, replacement: source(`${name}/src/index.ts`) })),
  { find: /^tenure$/, replacement: source('client/src/index.ts') },
  { find: /^tenure\/(.+)$/, replacement: source('client/src/$1/index.ts') },
];

const endToEnd = ['tests/**/*.e2e.test.ts', 'conformance/**/*.test.ts'];
const long = ['{tests,packages,simulation}/**/*.long.test.ts'];
/** What needs programs that neither Debian nor npm has. */
const soak = ['tests/**/*.soak.test.ts'];

const notOurs = ['**/node_modules/**', '**/dist/**'];

/** A test that tries more may take longer: the limit is there for what is stuck. */
const timeoutsMs: Readonly<Record<string, number>> = { commit: 180_000, ci: 600_000, soak: 1_800_000 };
const testTimeout = timeoutsMs[process.env['TENURE_TEST_EFFORT'] ?? 'commit'] ?? 180_000;

/** Common to all. Files share their worker: to start one for each would take longer than the tests. */
const common: NonNullable<TestProjectInlineConfiguration['test']> = {
  environment: 'node',
  pool: 'forks',
  isolate: false,
  globalSetup: ['tests/harness/global-setup.ts'],
  setupFiles: ['tests/harness/property-seed.ts'],
  exclude: notOurs,
  hookTimeout: 120_000,
};

/**
 * `unit` runs from the sources. The others start the built command as a process, so they need `npm run build` first.
 * `long` is for CI and for a soak; `tests/README.md` says which run has what. No test has the machine to itself: what
 * measures a time measures beside it what the machine withheld.
 */
export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        resolve: { alias },
        test: {
          ...common,
          name: 'unit',
          include: ['{packages/*/src,tests,benchmarks,simulation}/**/*.test.ts'],
          exclude: [...notOurs, ...endToEnd, ...long, ...soak],
          testTimeout,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve: { alias },
        test: {
          ...common,
          name: 'e2e',
          include: endToEnd,
          exclude: [...notOurs, ...long],
          testTimeout,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve: { alias },
        test: {
          ...common,
          name: 'long',
          include: process.env['TENURE_TEST_EFFORT'] === 'soak' ? [...long, ...soak] : long,
          testTimeout: 900_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
