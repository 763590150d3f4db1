// npm run simulate -- --seed N [--trace]                     runs one seed
//                     --scenario FILE-OR-JSON [--trace]      runs one scenario, as a failure prints it
//                     --seeds A-B                            runs these seeds
//                     --minutes M [--from SEED]              runs seeds from there on, or from a random one
//                     --count N [--from SEED] --record FILE  runs that many seeds, and continues where FILE ends
//                     --mutants [WORDS ...]                  checks that seeds find each broken rule; --list lists them
// simulation/README.md explains all options.
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { requireNode } from './prepare.mjs';
import { bundleWorker } from './simulation/bundle.mjs';
import { listMutants, readMutants, runMutants, selectMutants } from './simulation/mutant-gate.mjs';
import { openRecord } from './simulation/seed-record.mjs';
import { runRanges } from './simulation/seed-ranges.mjs';
import { reportSeeds, showFailures } from './simulation/seed-report.mjs';
import { Worker } from './simulation/worker-process.mjs';

const options = {
  seed: { type: 'string' },
  scenario: { type: 'string' },
  trace: { type: 'boolean' },
  seeds: { type: 'string' },
  minutes: { type: 'string' },
  count: { type: 'string' },
  from: { type: 'string' },
  record: { type: 'string' },
  covered: { type: 'boolean' },
  hashes: { type: 'boolean' },
  mutants: { type: 'boolean' },
  part: { type: 'string' },
  start: { type: 'string' },
  list: { type: 'boolean' },
  workers: { type: 'string' },
  json: { type: 'boolean' },
};
/** The last seed whose number is short enough to be typed. */
const randomSeedMax = 1_000_000_000;
/** How many seeds a process runs between two reports. */
const rangeSeeds = { short: 20, recorded: 500 };

async function main() {
  const { values, positionals } = parse();
  const workers = wholeNumber(values, 'workers') ?? availableParallelism();
  if (workers === 0) throw new Usage('--workers takes at least 1');
  if (values.mutants) return mutants(values, positionals, workers);
  if (positionals.length > 0) throw new Usage(`unexpected argument ${positionals[0]}`);
  if (values.seed !== undefined || values.scenario !== undefined) return replay(values);
  if (values.hashes) return hashes(rangeOf(values));
  return seeds(values, workers);
}

function parse() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Usage(error.message);
  }
}

/** Exactly one simulation in one process, whose trace goes to stdout. */
async function replay(values) {
  const isTraced = values.trace ?? false;
  const job = { kind: 'replay', seed: wholeNumber(values, 'seed'), scenario: scenarioIn(values.scenario), isTraced };
  const worker = new Worker(await bundleWorker());
  const report = await worker.ask(job);
  await worker.end();
  if (values.json) console.log(JSON.stringify(report));
  else {
    console.log(`scenario: ${JSON.stringify(report.scenario)}`);
    console.log(`trace hash: ${report.traceHash}`);
    for (const violation of report.violations) console.log(violation);
    console.log(report.violations.length === 0 ? 'no rule is violated' : `${report.violations.length} violations`);
  }
  return report.violations.length === 0 ? 0 : 1;
}

function scenarioIn(text) {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(existsSync(text) ? readFileSync(text, 'utf8') : text);
  } catch {
    throw new Usage('--scenario takes a file or JSON');
  }
}

/** One line a seed, which two versions of Node must agree on. */
async function hashes({ from, count }) {
  const worker = new Worker(await bundleWorker());
  for (let seed = from; seed < from + count; seed += 1) {
    const { traceHash, violations } = await worker.ask({ kind: 'replay', seed, isTraced: false });
    console.log(`${seed} ${traceHash} ${violations.length}`);
  }
  await worker.end();
  return 0;
}

async function seeds(values, workers) {
  const { from, count } = rangeOf(values);
  const minutes = Number(values.minutes ?? Infinity);
  if (!(minutes > 0)) throw new Usage('--minutes takes a number');
  const untilMs = performance.now() + minutes * 60_000;
  const rangeCount = values.record === undefined ? rangeSeeds.short : rangeSeeds.recorded;
  const say = values.json ? () => {} : (line) => console.log(line);
  const bundle = await bundleWorker();
  const record = await openRecord({ file: values.record, from, count, rangeCount, say });
  await runRanges({ ranges: record.ranges(), bundle, workers, untilMs, done: (range) => record.add(range) });
  const shown = values.json ? [] : await showFailures(bundle, record.state.failures);
  return reportSeeds({ state: record.state, isJson: values.json, isCovered: values.covered, shown });
}

/** The seeds that the options name. */
function rangeOf(values) {
  if (values.seeds !== undefined) {
    const [from, to] = values.seeds.split('-').map(Number);
    if (!(Number.isSafeInteger(from) && to >= from)) throw new Usage('--seeds takes two numbers: A-B');
    return { from, count: to - from + 1 };
  }
  const count = wholeNumber(values, 'count');
  if (count === undefined && values.minutes === undefined) throw new Usage('which seeds?');
  const from = wholeNumber(values, 'from') ?? (values.record === undefined ? randomInt(randomSeedMax) : 1);
  return { from, count: count ?? Infinity };
}

async function mutants(values, words, workers) {
  const { part, list } = values;
  const start = wholeNumber(values, 'start');
  const chosen = selectMutants(readMutants(), { words, part, start });
  if (chosen.length === 0) throw new Usage('no mutant has such a name');
  if (list) return listMutants(chosen);
  const untilMs = performance.now() + Number(values.minutes ?? Infinity) * 60_000;
  return runMutants({ mutants: chosen, workers, untilMs, isJson: values.json });
}

function wholeNumber(values, name) {
  if (values[name] === undefined) return undefined;
  const number = Number(values[name]);
  if (!Number.isSafeInteger(number) || number < 0) throw new Usage(`--${name} takes a whole number`);
  return number;
}

class Usage extends Error {}

requireNode();
// The bundles are removed at the exit of the process, which a signal alone would skip.
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 }))
  process.on(signal, () => process.exit(code));
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Usage)) throw error;
  console.error(`${error.message}\nusage: the first lines of scripts/simulate.mjs, or simulation/README.md`);
  process.exitCode = 2;
}
