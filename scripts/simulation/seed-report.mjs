import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../prepare.mjs';
import { Worker } from './worker-process.mjs';

const requiredFile = join(root, 'simulation/required-coverage.json');
/** Shortening a failure takes half a minute, and most failures of a run are the same. */
const shortened = 3;
const maxAttempts = 300;

/** Prints the failing seeds, the first few of them shortened. */
export async function showFailures(bundle, failures) {
  const shown = [];
  const known = new Set();
  for (const { seed, violations } of failures) {
    console.log(`\nseed ${seed} fails:\n  ${violations.join('\n  ')}`);
    console.log(`  replay it with: npm run simulate -- --seed ${seed} --trace`);
    const rule = /^(.*?)(?: at \d+ ms)?: /s.exec(violations[0])?.[1] ?? '';
    if (known.has(rule) || known.size >= shortened) continue;
    known.add(rule);
    const short = await shorten(bundle, seed, rule);
    shown.push({ seed, rule, ...short });
    if (short === undefined) continue;
    console.log(`  ${rule} is violated by this much too (${short.attempts} attempts to shorten it):`);
    console.log(`  npm run simulate -- --trace --scenario '${JSON.stringify(short.scenario)}'`);
  }
  return shown;
}

async function shorten(bundle, seed, rule) {
  const worker = new Worker(bundle);
  try {
    return await worker.ask({ kind: 'shrink', seed, rule, maxAttempts }, 120_000);
  } catch (error) {
    console.log(`  it could not be shortened: ${error.message}`);
    return undefined;
  } finally {
    await worker.end();
  }
}

/** Prints the totals, and returns the exit code. */
export function reportSeeds({ state, isJson, isCovered, shown }) {
  const { from, seeds, seconds, failures, counts } = state;
  const missing = isCovered ? JSON.parse(readFileSync(requiredFile, 'utf8')).filter((name) => !(counts[name] > 0)) : [];
  const sorted = Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
  const perSecond = Number((seeds / Math.max(seconds, 0.001)).toFixed(1));
  if (isJson) {
    const report = { from, seeds, seconds, seedsPerSecondPerCore: perSecond, failures, counts: sorted, missing };
    console.log(JSON.stringify(report));
  } else {
    console.log('');
    for (const [name, count] of Object.entries(sorted)) console.log(`${String(count).padStart(12)}  ${name}`);
    for (const name of missing) console.log(`NEVER HAPPENED: ${name}, which simulation/required-coverage.json lists`);
    const failed = `${failures.length} failed${shown.length > 0 ? ', see above' : ''}`;
    console.log(`${seeds} seeds from ${from} on, ${failed}, ${perSecond} a second on one core`);
  }
  return failures.length + missing.length === 0 ? 0 : 1;
}
