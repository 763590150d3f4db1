// Plants one defect after the other in a scratch copy of the checkout, and reports which test finds it.
//   node scripts/mutants.mjs                 all of tests/mutants/*.json
//   node scripts/mutants.mjs library 'a hold'    the mutants of an area, or with these words in their names
//   --list       only lists them
//   --finders    only runs the finders, without a defect: all of them must pass
//   --quick      skips the other tests of the area when the finder finds nothing
// See tests/mutants/README.md.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync } from 'node:fs';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { programs, requireNode, root } from './prepare.mjs';

/** A test that hangs has found something, too. */
const runLimitMs = 15 * 60_000;
const killGraceMs = 5_000;

const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const words = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));

async function main() {
  requireNode();
  const unknown = flags.find((flag) => !['--list', '--finders', '--quick'].includes(flag));
  if (unknown !== undefined) return usage(`unknown option ${unknown}`);
  const mutants = readMutants().filter(isAsked);
  if (mutants.length === 0) return usage('no mutant has such a name');
  if (flags.includes('--list')) {
    for (const { area, name, finder } of mutants) console.log(`${area}: ${name}\n    ${finder}`);
    return 0;
  }
  const scratch = mkdtempSync(join(tmpdir(), 'tenure-mutants-'));
  try {
    copyCheckout(scratch);
    return flags.includes('--finders') ? await runFinders(scratch, mutants) : await runMutants(scratch, mutants);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function usage(complaint) {
  console.error(
    `${complaint}\nusage: node scripts/mutants.mjs [--list | --finders | --quick] [area or words of a name ...]`,
  );
  return 2;
}

function readMutants() {
  const folder = join(root, 'tests/mutants');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => {
      const { area, tests, long, mutants } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      return mutants.map((mutant) => ({ ...mutant, area, tests, long }));
    });
}

function isAsked({ area, name }, _at, all) {
  const isArea = (word) => all.some((mutant) => mutant.area === word);
  return words.length === 0 || words.some((word) => (isArea(word) ? area === word : name.includes(word)));
}

/**
 * All files of the checkout that git does not ignore, changed or not, with their build output. The packages are linked
 * again, so that only the copies are used.
 */
function copyCheckout(scratch) {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 };
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], options);
  for (const path of listed.split('\0')) if (path !== '' && existsSync(join(root, path))) copy(scratch, path);
  for (const name of readdirSync(join(root, 'packages'))) {
    for (const built of ['dist', 'tsconfig.tsbuildinfo']) {
      const path = join('packages', name, built);
      if (existsSync(join(root, path))) copy(scratch, path);
    }
  }
  linkModules(join(root, 'node_modules'), join(scratch, 'node_modules'), scratch);
  // Some suites ask git which files there are.
  execFileSync('git', ['init', '-q'], { cwd: scratch });
  execFileSync('git', ['add', '-A'], { cwd: scratch });
}

function copy(scratch, path) {
  // With their times, so that the build is incremental.
  cpSync(join(root, path), join(scratch, path), { recursive: true, preserveTimestamps: true });
}

function linkModules(from, to, scratch) {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    if (name.startsWith('.vite')) continue;
    const path = join(from, name);
    if (name.startsWith('@')) {
      linkModules(path, join(to, name), scratch);
      continue;
    }
    const target = realpathSync(path);
    const inside = relative(root, target);
    const isOurs = !inside.startsWith('..') && !inside.startsWith('node_modules');
    symlinkSync(isOurs ? join(scratch, inside) : target, join(to, name));
  }
}

/** The finders without a defect: a test that fails then finds nothing. */
async function runFinders(scratch, mutants) {
  if ((await build(scratch)) !== undefined) return 1;
  const broken = [];
  for (const finder of new Set(mutants.map((mutant) => mutant.finder))) {
    const outcome = await runTests(scratch, [finder], { TENURE_TEST_EFFORT: 'commit' });
    console.log(`${outcome.found === undefined ? 'ok    ' : 'FAILS '} ${finder} (${seconds(outcome.ms)})`);
    if (outcome.found !== undefined) broken.push(`${finder}: ${outcome.found}`);
  }
  for (const line of broken) console.log(`fails without a defect: ${line}`);
  return broken.length === 0 ? 0 : 1;
}

async function runMutants(scratch, mutants) {
  const failures = [];
  let found = 0;
  for (const mutant of mutants) {
    const outcome = await runMutant(scratch, mutant);
    console.log(`${outcome.verdict.padEnd(8)} ${mutant.area}: ${mutant.name}\n         ${outcome.told}`);
    if (outcome.verdict === 'found') found += 1;
    else failures.push(`${outcome.verdict}: ${mutant.area}: ${mutant.name}`);
  }
  console.log(`\n${found} of ${mutants.length} found`);
  for (const failure of failures) console.log(failure);
  return failures.length === 0 ? 0 : 1;
}

async function runMutant(scratch, mutant) {
  const path = join(scratch, mutant.file);
  const [text, replacement] = [mutant.text, mutant.replacement].map((lines) => [lines].flat().join('\n'));
  const original = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const parts = original.split(text);
  if (parts.length !== 2)
    return { verdict: 'stale', told: `its text occurs ${parts.length - 1} times in ${mutant.file}` };
  writeFileSync(path, parts.join(replacement));
  try {
    const complaint = await build(scratch);
    if (complaint !== undefined) return { verdict: 'invalid', told: `it does not compile: ${complaint}` };
    return await look(scratch, mutant);
  } finally {
    writeFileSync(path, original);
  }
}

/** The finder alone, then the other tests that run before a commit, then those that only CI runs. */
async function look(scratch, { finder, tests, long }) {
  const rounds = [{ files: [finder], effort: 'commit', isLong: isLong(finder) }];
  if (!flags.includes('--quick')) {
    rounds.push({ files: tests, effort: 'commit', isLong: false });
    if (long.length > 0) rounds.push({ files: long, effort: 'ci', isLong: true });
  }
  let ms = 0;
  for (const [at, { files, effort, isLong: isLongRound }] of rounds.entries()) {
    const outcome = await runTests(scratch, files, { TENURE_TEST_EFFORT: effort }, isLongRound);
    ms += outcome.ms;
    if (outcome.found === undefined) continue;
    const where = at === 0 ? 'as expected' : `not by ${finder}`;
    return { verdict: 'found', told: `${where}: ${outcome.found} (${seconds(ms)})` };
  }
  return { verdict: 'SURVIVES', told: `${finder} and the rest of its area pass (${seconds(ms)})` };
}

function isLong(path) {
  return path.endsWith('.long.test.ts');
}

function projectsOf(files, isLongRound) {
  if (isLongRound) return ['long'];
  const [only] = files.length === 1 ? files : [];
  if (only === undefined || !only.endsWith('.test.ts')) return ['unit', 'e2e', 'timed'];
  if (only.endsWith('.timed.test.ts')) return ['timed'];
  return [/\.e2e\.test\.ts$|^conformance\//.test(only) ? 'e2e' : 'unit'];
}

/** The first error of the compiler; undefined without an error. */
async function build(scratch) {
  const { code, output } = await runNode(scratch, [programs.tsc, '-b'], {});
  return code === 0 ? undefined : output.trim().split('\n')[0];
}

/** The first test that fails, if one does. */
async function runTests(scratch, files, variables, isLongRound = files.every(isLong)) {
  const report = join(scratch, 'node_modules/report.json');
  rmSync(report, { force: true });
  const startedMs = performance.now();
  const projects = projectsOf(files, isLongRound).flatMap((project) => ['--project', project]);
  const args = [programs.vitest, 'run', ...projects, '--bail', '1', '--reporter=json', `--outputFile.json=${report}`];
  const { code, output, isHung } = await runNode(scratch, [...args, ...files], variables);
  const ms = performance.now() - startedMs;
  if (isHung) return { found: `${files.join(' ')} (did not end)`, ms };
  if (!existsSync(report)) return failedToRun(files, output, ms);
  const { testResults, numTotalTests } = JSON.parse(readFileSync(report, 'utf8'));
  if (numTotalTests === 0 && testResults.length === 0) return failedToRun(files, output, ms);
  return { found: firstFailure(scratch, testResults) ?? (code === 0 ? undefined : 'an error outside of any test'), ms };
}

function failedToRun(files, output, ms) {
  console.error(`no result of ${files.join(' ')} (${seconds(ms)}):\n${output.slice(-2_000)}`);
  throw new Error('the tests could not be run');
}

function firstFailure(scratch, testResults) {
  for (const file of testResults) {
    const path = relative(scratch, file.name);
    const test = file.assertionResults.find(({ status }) => status === 'failed');
    if (test !== undefined) return `${path} > ${test.fullName}`;
    if (file.status === 'failed') return `${path} (before or after its tests)`;
  }
  return undefined;
}

/** In its own process group, so that a hanging run ends with all its children. */
function runNode(scratch, args, variables) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...variables };
    const child = spawn(process.execPath, args, {
      cwd: scratch,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let isHung = false;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const end = (signal) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch {
        // It has ended meanwhile.
      }
    };
    const timer = setTimeout(() => {
      isHung = true;
      end('SIGTERM');
      setTimeout(() => end('SIGKILL'), killGraceMs).unref();
    }, runLimitMs);
    const stop = () => {
      end('SIGTERM');
      reject(new Error('stopped'));
    };
    process.on('SIGINT', stop).on('SIGTERM', stop);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      process.off('SIGINT', stop).off('SIGTERM', stop);
      resolve({ code, output, isHung });
    });
  });
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

process.exitCode = await main();
