// npm test: install what is missing, build, check types and style, run the tests, and end with one line of totals.
//   npm test -- FILE-OR-FOLDER ... [-t NAME]   the tests of these files alone, of any kind
//   --long         the long suites at the effort of CI
//   --smoke        unit tests, a short run of the built command, the examples and random histories beside etcd: what CI
//                  does on other versions of Node
// TENURE_TEST_SEED and TENURE_TEST_EFFORT (commit, ci, soak) are explained in tests/README.md.
import { writeFileSync } from 'node:fs';
import { build, installWhatIsMissing, isInterrupted, programs, requireNode, run } from './prepare.mjs';
import { TestRun } from './test-run.mjs';

const ci = { TENURE_TEST_EFFORT: process.env.TENURE_TEST_EFFORT ?? 'ci' };

/** At effort `ci` the differential test sends six hundred random histories to etcd and to Tenure. */
const smokeFiles = ['tests/smoke.e2e.test.ts', 'tests/examples.e2e.test.ts', 'conformance/differential.test.ts'];

/** The parts of each mode. A share is the approximate time of a part on two cores; three times that ends it. */
const modes = {
  '--commit': {
    checks: true,
    parts: [
      { name: 'unit', shareSeconds: 120, args: ['--project', 'unit'] },
      { name: 'e2e', shareSeconds: 200, args: ['--project', 'e2e'] },
    ],
  },
  '--long': {
    parts: [{ name: 'long', shareSeconds: 900, args: ['--project', 'long'], env: ci }],
  },
  '--smoke': {
    parts: [
      { name: 'unit', shareSeconds: 250, args: ['--project', 'unit'] },
      {
        name: 'smoke',
        shareSeconds: 150,
        args: ['--project', 'e2e', ...smokeFiles],
      },
    ],
  },
};

async function main() {
  const [first = '--commit', ...others] = process.argv.slice(2);
  const mode = first.startsWith('-') ? modes[first] : chosen([first, ...others]);
  if (mode === undefined || (first.startsWith('-') && others.length > 0)) {
    console.error(`usage: npm test [-- FILE-OR-FOLDER ... [-t NAME] | ${Object.keys(modes).join(' | ')}]`);
    return 2;
  }
  requireNode();
  await installWhatIsMissing();
  const testRun = new TestRun();
  if (await testRun.step('build', build)) {
    // The suites run even if the checks fail: one run shows every fault.
    if (mode.checks) await checks(testRun);
    for (const part of mode.parts) if (!isInterrupted()) await testRun.vitest(part);
  }
  const { TENURE_TEST_SUMMARY: summaryFile } = process.env;
  if (summaryFile !== undefined) writeFileSync(summaryFile, JSON.stringify(testRun.summary()));
  testRun.report();
  return testRun.failed === 0 ? 0 : 1;
}

/** Files and folders as arguments of vitest, in any project. */
function chosen(args) {
  return { parts: [{ name: args.join(' '), shareSeconds: 3_600, args }] };
}

async function checks(testRun) {
  await Promise.all([
    testRun.step('types', () => run(process.execPath, [programs.tsc, '-p', 'tsconfig.check.json'])),
    testRun.step('lint', () => run(process.execPath, [programs.oxlint, '--type-aware', '--deny-warnings', '--quiet'])),
    testRun.step('format', () => run(process.execPath, [programs.oxfmt, '--check'])),
  ]);
}

process.exitCode = await main();
