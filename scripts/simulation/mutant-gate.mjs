// The gate of mutants: each of simulation/mutants/*.json breaks one rule, and the same seeds must find each of them, by
// a checker that is meant to.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../prepare.mjs';
import { bundleFile, bundleWorker, StaleEdit } from './bundle.mjs';
import { TimeIsUp, Worker } from './worker-process.mjs';

const folder = join(root, 'simulation/mutants');
/** The seeds are 1 to this, chosen for no mutant. */
const seedCount = 2_000;
/** The bundle without a mutant. */
const unchanged = 'unchanged';
/** A mutant may make a simulation endless. */
const mutantLimitMs = 600_000;

export function readMutants() {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name) => {
      const mutants = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      return mutants.map((mutant) => ({ ...mutant, area: name.replace('.json', '') }));
    });
}

/** By words of their names or areas, by a part K/N of the list, or all in turn from a place in the list on. */
export function selectMutants(all, { words, part, start = 0 }) {
  const asked = (mutant) => words.some((word) => mutant.area === word || mutant.name.includes(word));
  const chosen = words.length === 0 ? all : all.filter(asked);
  if (part !== undefined) {
    const [which, parts] = part.split('/').map(Number);
    return chosen.filter((_mutant, index) => index % parts === which - 1);
  }
  const first = chosen.length === 0 ? 0 : start % chosen.length;
  return [...chosen.slice(first), ...chosen.slice(0, first)];
}

export function listMutants(mutants) {
  for (const { area, name, rule } of mutants) console.log(`${area}: ${name} [${[rule].flat().join(', ')}]`);
  return 0;
}

/** Returns the exit code: 0 if each mutant that was tried within the time is found by a checker that is meant to. */
export async function runMutants({ mutants, workers, untilMs, isJson }) {
  const outcomes = [];
  await bundleWorker(unchanged);
  // Where time is short, none of it goes to mutants that are known to survive.
  const tried = mutants.filter(({ open }) => open === undefined || untilMs === Infinity);
  const waiting = tried.map((mutant, index) => ({ ...mutant, id: `mutant-${index}` }));
  const lane = async () => {
    while (performance.now() < untilMs) {
      const mutant = waiting.shift();
      if (mutant === undefined) return;
      const outcome = await runMutant(mutant, Math.min(mutantLimitMs, Math.max(0, untilMs - performance.now())));
      if (outcome.verdict === 'not tried') {
        waiting.unshift(mutant);
        return;
      }
      outcomes.push({ area: mutant.area, name: mutant.name, open: mutant.open, ...outcome });
      if (!isJson) print(mutant, outcome);
    }
  };
  await Promise.all(Array.from({ length: workers }, lane));
  const failures = outcomes.filter(
    ({ verdict, open }) => verdict !== 'found' && (open === undefined || verdict === 'stale'),
  );
  const skipped = mutants.length - outcomes.length;
  if (isJson) console.log(JSON.stringify({ outcomes, skipped }));
  else {
    const left = skipped === 0 ? '' : `; there was no time for ${skipped} others`;
    const found = outcomes.filter(({ verdict }) => verdict === 'found').length;
    console.log(`\n${found} of ${outcomes.length} found${left}`);
    for (const { verdict, area, name } of failures) console.log(`${verdict}: ${area}: ${name}`);
  }
  // The first one may need more time than there was.
  const isCutShort = performance.now() >= untilMs;
  return failures.length === 0 && (outcomes.length > 0 || isCutShort) ? 0 : 1;
}

function print({ area, name }, { verdict, told, seconds }) {
  console.log(`${verdict.padEnd(12)} ${area}: ${name}\n             ${told} (${seconds.toFixed(1)} s)`);
}

/** The verdict, with how it came about in words. */
async function runMutant(mutant, limitMs) {
  const startedMs = performance.now();
  const outcome = await judge(mutant, limitMs);
  return { ...outcome, seconds: (performance.now() - startedMs) / 1_000 };
}

async function judge(mutant, limitMs) {
  const rules = [mutant.rule].flat();
  let bundle;
  try {
    bundle = await bundleWorker(mutant.id, editsOf(mutant));
  } catch (error) {
    return { verdict: isStale(error) ? 'stale' : 'invalid', told: error.message };
  }
  const worker = new Worker(bundle, 'ignore');
  try {
    const outcome = await worker.ask({ kind: 'hunt', count: seedCount, rules }, limitMs);
    const complaint = outcome.found === undefined ? undefined : await complaintWithout(outcome.found.seed);
    return complaint === undefined ? verdictOf(outcome, rules) : { verdict: 'SEED FAILS', told: complaint };
  } catch (error) {
    // The time of the whole run ended: that says nothing about this mutant.
    if (error instanceof TimeIsUp && limitMs < mutantLimitMs) return { verdict: 'not tried', told: error.message };
    return { verdict: 'SURVIVES', told: `${error.message}; meant: ${rules.join(', ')}` };
  } finally {
    await worker.end();
  }
}

/** A seed that fails without the mutant too has found something else. */
async function complaintWithout(seed) {
  const worker = new Worker(bundleFile(unchanged), 'ignore');
  try {
    const { failures } = await worker.ask({ kind: 'seeds', from: seed, count: 1 }, mutantLimitMs);
    return failures.length === 0 ? undefined : `seed ${seed} fails without it: ${failures[0].violations[0]}`;
  } finally {
    await worker.end();
  }
}

function editsOf({ file, find, replace, files = [] }) {
  return [...(file === undefined ? [] : [{ file, find, replace }]), ...files];
}

function isStale(error) {
  return error instanceof StaleEdit || `${error.message}`.includes('StaleEdit');
}

function verdictOf({ found, others }, rules) {
  const list = Object.entries(others).map(([rule, seed]) => `${rule} by seed ${seed}`);
  const before = list.length === 0 ? '' : `; before that ${list.join(', ')}`;
  if (found !== undefined) {
    return { verdict: 'found', seed: found.seed, others, told: `seed ${found.seed}: ${found.violation}${before}` };
  }
  const meant = `not by ${rules.join(', ')} in ${seedCount} seeds`;
  if (list.length === 0) return { verdict: 'SURVIVES', others, told: meant };
  return { verdict: 'ANOTHER RULE', others, told: `${meant}, but ${list.join(', ')}` };
}
