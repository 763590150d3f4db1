import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Packages are imported by name in tests and resolve to their sources, so that unit tests need no build. */
const packageNames = ['protocol', 'core', 'server', 'cli'];
const source = (path: string): string => fileURLToPath(new URL(`./packages/${path}`, import.meta.url));
const alias = [
  ...packageNames.map((name) => ({ find: `@tenure/${name}`, replacement: source(`${name}/src/index.ts`) })),
  { find: /^tenure$/, replacement: source('client/src/index.ts') },
  { find: /^tenure\/(.+)$/, replacement: source('client/src/$1/index.ts') },
];

const endToEnd = ['tests/**/*.e2e.test.ts', 'conformance/**/*.test.ts'];
const long = ['tests/**/*.long.test.ts', 'packages/**/src/**/*.long.test.ts'];
const simulation = ['simulation/**/*.long.test.ts'];

/**
 * Four suites. `unit` runs from the sources; `e2e` and `long` start the built command as a process, so they need
 * `npm run build` first and run one file at a time: their timing assertions would suffer from each other's load.
 * `simulation` is long too, and measures nothing: its files share the processor.
 */
export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'unit',
          environment: 'node',
          include: [
            'packages/**/src/**/*.test.ts',
            'tests/**/*.test.ts',
            'benchmarks/**/*.test.ts',
            'simulation/**/*.test.ts',
          ],
          exclude: ['**/node_modules/**', '**/dist/**', ...endToEnd, ...long, ...simulation],
          testTimeout: 30_000,
          hookTimeout: 30_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'e2e',
          environment: 'node',
          include: endToEnd,
          exclude: ['**/node_modules/**', '**/dist/**', ...long],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'long',
          environment: 'node',
          include: long,
          exclude: ['**/node_modules/**', '**/dist/**'],
          testTimeout: 900_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        resolve: { alias },
        test: {
          name: 'simulation',
          environment: 'node',
          include: simulation,
          exclude: ['**/node_modules/**', '**/dist/**'],
          testTimeout: 1_800_000,
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
