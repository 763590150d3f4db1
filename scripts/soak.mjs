// npm run test:soak -- --minutes N [--resume] [--only TEXT]
//
// Everything that needs hours or random inputs: the long suites at full length, all others with new seeds and more
// values, and new simulated seeds. The items take turns until the time is up. Progress is stored in the folder
// soak-report after each item, so that `--resume` continues there. The report in that folder lists the results.
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { runLimited, timeIsUpCode } from './limited-run.mjs';
import { build, installWhatIsMissing, isInterrupted, programs, requireNode, root } from './prepare.mjs';
import { TestRun } from './test-run.mjs';

const folder = join(root, 'soak-report');
const stateFile = join(folder, 'state.json');
/** The maximum time of a single item, at full length: three times this ends it. */
const itemShareSeconds = 2_400;
const simulationMinutes = 20;

async function main() {
  const options = parseOptions();
  if (options === undefined) return 2;
  requireNode();
  await installWhatIsMissing();
  if ((await build()) !== 0) return 1;
  const state = openState(options.resume);
  if (state === undefined) return 2;
  const items = listItems().filter(({ name }) => name.includes(options.only));
  if (items.length === 0) {
    console.error(`no item has ${options.only} in its name`);
    return 2;
  }
  const untilMs = performance.now() + options.minutes * 60_000;
  while (performance.now() < untilMs && !isInterrupted()) {
    const isDone = await takeTurn(state, items[state.turns % items.length], untilMs);
    if (isDone) state.turns += 1;
    save(state, items);
  }
  const failed = state.runs.filter((run) => run.failed > 0).length;
  const passed = state.runs.length - failed;
  console.log(`\nThe report is in the folder soak-report.\n${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function parseOptions() {
  const options = { minutes: { type: 'string' }, resume: { type: 'boolean' }, only: { type: 'string' } };
  try {
    const { values } = parseArgs({ options });
    const minutes = Number(values.minutes);
    if (minutes > 0) return { minutes, resume: values.resume ?? false, only: values.only ?? '' };
  } catch (error) {
    console.error(error.message);
  }
  console.error('usage: npm run test:soak -- --minutes N [--resume] [--only TEXT-IN-THE-NAME-OF-ITEMS]');
  return undefined;
}

/** Each file of the long suites by itself, the unit and end-to-end tests with more to do, and simulations. */
function listItems() {
  const list = [programs.vitest, 'list', '--project', 'long', '--filesOnly'];
  const files = execFileSync(process.execPath, list, { cwd: root, encoding: 'utf8' }).match(/\S+\.long\.test\.ts/g);
  const long = files.map((file) => ({ name: file, args: ['--project', 'long', file] }));
  const others = [
    { name: 'unit', args: ['--project', 'unit'] },
    { name: 'e2e', args: ['--project', 'e2e'] },
  ];
  const mutants = { name: 'simulation-mutants', simulate: () => ['--mutants'] };
  const simulation = {
    name: 'simulation',
    simulate: (seed) => ['--minutes', `${simulationMinutes}`, '--from', `${seed}`, '--covered'],
  };
  // Half of the turns: only many seeds find something.
  return [...long, ...others, mutants].flatMap((item) => [item, simulation]);
}

function openState(resume) {
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  if (!resume) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    return { commit, turns: 0, runs: [] };
  }
  if (!existsSync(stateFile)) {
    console.error('there is nothing to resume: soak-report/state.json is missing');
    return undefined;
  }
  return { ...JSON.parse(readFileSync(stateFile, 'utf8')), commit };
}

/** Resolves with whether the item was completed: an incomplete one is the first of the next run. */
async function takeTurn(state, item, untilMs) {
  const seed = randomInt(2 ** 31);
  const log = join(folder, `${String(state.turns).padStart(4, '0')}-${item.name.replaceAll('/', '-')}.log`);
  const env = { TENURE_TEST_EFFORT: 'soak', TENURE_TEST_SEED: `${seed}` };
  console.log(`\n${item.name}, seed ${seed} ...`);
  const run = new TestRun();
  const limits = { shareSeconds: itemShareSeconds, untilMs };
  const outcome =
    item.simulate === undefined
      ? await run.vitest({ ...item, ...limits, env, output: log })
      : await simulate(run, item, { seed, log, ...limits });
  if (outcome === undefined || isInterrupted()) {
    console.log(`${item.name} was not completed`);
    rmSync(log);
    return false;
  }
  const [{ seconds, passed, failed }] = run.summary().parts;
  state.runs.push({
    item: item.name,
    seed,
    seconds,
    passed: passed ?? 1 - failed,
    failed,
    commit: state.commit,
    log: relative(root, log),
  });
  if (failed === 0) rmSync(log);
  else console.log(readFileSync(log, 'utf8').slice(-10_000));
  return true;
}

/** Undefined when the time was up, as for `TestRun.vitest`. */
async function simulate(run, { name, simulate: argumentsOf }, { seed, log, ...limits }) {
  const args = ['scripts/simulate.mjs', ...argumentsOf(seed)];
  const program = { command: process.execPath, args, output: log };
  let code;
  await run.step(name, async () => (code = await runLimited({ name, ...program, ...limits })));
  return code === timeIsUpCode ? undefined : code === 0;
}

function save(state, items) {
  writeFileSync(stateFile, JSON.stringify(state, undefined, 1));
  const minutes = state.runs.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
  const never = items.filter(({ name }) => state.runs.every(({ item }) => item !== name)).map(({ name }) => name);
  const rows = state.runs.map(({ item, seed, seconds, passed, failed, commit, log }) => {
    const outcome = failed === 0 ? `${passed} passed` : `**${failed} failed**, see ${log}`;
    return `| ${item} | ${seed} | ${seconds.toFixed(0)} | ${outcome} | ${commit.slice(0, 9)} |`;
  });
  const text = [
    `# Soak: ${minutes.toFixed(0)} minutes, ${state.turns} turns`,
    '',
    `Not run yet: ${never.length === 0 ? 'nothing' : [...new Set(never)].join(', ')}.`,
    '',
    '| item | seed | seconds | outcome | commit |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ];
  writeFileSync(join(folder, 'report.md'), text.join('\n'));
}

process.exitCode = await main();
