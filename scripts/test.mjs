// npm test: install what is missing, build, check the types and the style, run the suites, and end with one line of
// totals.
//   --long    the long suite instead (crashes, randomised runs)
//   --smoke   unit tests, a short run of the built command and the examples: what CI does on the other Node versions
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, installWhatIsMissing, programs, requireNode, root, run } from './prepare.mjs';

const modes = {
  '': { checks: true, runs: [{ project: 'unit' }, { project: 'e2e' }] },
  '--long': { checks: false, runs: [{ project: 'long' }, { project: 'simulation' }] },
  '--smoke': {
    checks: false,
    runs: [{ project: 'unit' }, { project: 'e2e', files: ['tests/smoke.e2e.test.ts', 'tests/examples.e2e.test.ts'] }],
  },
};

const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts/skip-reporter.mjs')}`, '--reporter=json'];

const totals = { passed: 0, failed: 0, skipped: 0 };

async function main() {
  const mode = modes[process.argv[2] ?? ''];
  if (mode === undefined) {
    console.error('usage: node scripts/test.mjs [--long | --smoke]');
    return 2;
  }
  requireNode();
  await installWhatIsMissing();
  if (await step('build', build)) {
    // The suites run whatever the checks say: one run shows everything there is to repair.
    if (mode.checks) await checks();
    for (const suite of mode.runs) await vitest(suite);
  }
  // Exactly this form, alone on the last line: CI reads it.
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  return totals.failed === 0 ? 0 : 1;
}

async function checks() {
  await step('types', () => run(process.execPath, [programs.tsc, '-p', 'tsconfig.check.json']));
  await step('lint', () => run(process.execPath, [programs.oxlint, '--type-aware', '--deny-warnings', '--quiet']));
}

/** A step that is no test counts as one failure when it fails and as nothing otherwise. */
async function step(name, action) {
  const startedMs = performance.now();
  const code = await action();
  console.log(`${code === 0 ? 'ok' : 'FAILED'}  ${name} (${seconds(performance.now() - startedMs)})`);
  if (code !== 0) totals.failed += 1;
  return code === 0;
}

async function vitest({ project, files = [] }) {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-test-'));
  const report = join(folder, `${project}.json`);
  const args = ['run', '--project', project, '--passWithNoTests', ...reporters];
  const code = await run(process.execPath, [programs.vitest, ...args, `--outputFile.json=${report}`, ...files]);
  try {
    count(project, code, JSON.parse(readFileSync(report, 'utf8')));
  } catch (error) {
    console.error(`no result of the ${project} suite: ${error.message}`);
    totals.failed += 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function count(project, code, report) {
  const before = totals.failed;
  totals.passed += report.numPassedTests;
  totals.failed += report.numFailedTests;
  for (const file of report.testResults) {
    // A file that could not even be loaded has no tests to count.
    if (file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed')) totals.failed += 1;
    for (const test of file.assertionResults) if (isSkipped(test)) countSkip(file.name, test);
  }
  // An error outside of any test (an unhandled rejection) fails the run and shows in no count.
  if (code !== 0 && totals.failed === before) {
    console.error(`the ${project} suite ended with code ${code}`);
    totals.failed += 1;
  }
}

function isSkipped(test) {
  return test.status === 'skipped' || test.status === 'pending' || test.status === 'todo' || test.status === 'disabled';
}

/** CI installs every program that a test may need, so a skip there hides something and counts as a failure. */
function countSkip(file, test) {
  totals.skipped += 1;
  if (process.env.CI !== 'true') return;
  console.error(`skipped under CI: ${file.slice(root.length + 1)} > ${test.fullName}`);
  totals.failed += 1;
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

process.exitCode = await main();
