import { Worker } from './worker-process.mjs';

/** A range is stuck after this long for each seed. */
const seedLimitMs = 10_000;
/** With this many failures further seeds tell little. */
const maxFailures = 10;

/**
 * Runs disjoint ranges of seeds in several processes, until the ranges end, the time is up, or too much fails. `done`
 * gets each finished range: its seeds, seconds, failures and counts.
 */
export async function runRanges({ ranges, bundle, workers, untilMs, done }) {
  let failures = 0;
  const lane = async () => {
    let worker;
    for (;;) {
      if (performance.now() >= untilMs || failures >= maxFailures) break;
      const { value: range } = ranges.next();
      if (range === undefined) break;
      worker ??= new Worker(bundle);
      try {
        const outcome = await worker.ask({ kind: 'seeds', ...range }, range.count * seedLimitMs);
        failures += outcome.failures.length;
        done({ ...range, ...outcome });
      } catch (error) {
        failures += 1;
        const violations = [`failed: ${error.message}, in one of ${range.count} seeds from this one on`];
        done({ ...range, seeds: 0, seconds: 0, counts: {}, failures: [{ seed: range.from, violations }] });
        await worker.end();
        worker = undefined;
      }
    }
    await worker?.end();
  };
  await Promise.all(Array.from({ length: workers }, lane));
}
