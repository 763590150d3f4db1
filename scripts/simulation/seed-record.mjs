import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { digestOfSimulation } from './bundle.mjs';

/**
 * The seeds that have been run, with their totals. With a file it is stored after each range, and continues there: a
 * range that was stopped is run again. Seeds of another simulation do not count.
 */
export async function openRecord({ file, from, count, rangeCount, say }) {
  const digest = file === undefined ? undefined : await digestOfSimulation();
  const fresh = { digest, from, seeds: 0, seconds: 0, ranges: [], failures: [], counts: {} };
  const known = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  if (known === undefined) return new SeedRecord(fresh, { file, count, rangeCount, say });
  if (known.digest === digest && known.from === from) {
    say(`${known.seeds} seeds are in ${file}`);
    return new SeedRecord(known, { file, count, rangeCount, say });
  }
  say(`the simulation has changed since ${file} was written: its ${known.seeds} seeds do not count`);
  return new SeedRecord(fresh, { file, count, rangeCount, say });
}

const linePeriodMs = 10_000;

class SeedRecord {
  state;
  #options;
  #lineMs = performance.now();

  constructor(state, options) {
    this.state = state;
    this.#options = options;
  }

  /** The ranges that have not been run. */
  *ranges() {
    const { from, ranges } = this.state;
    const { count, rangeCount } = this.#options;
    const done = [...ranges];
    for (let at = from; at < from + count;) {
      const known = done.find(([first, last]) => first <= at && at <= last);
      if (known !== undefined) {
        at = known[1] + 1;
        continue;
      }
      const next = Math.min(
        from + count,
        at + rangeCount,
        ...done.map(([first]) => first).filter((first) => first > at),
      );
      yield { from: at, count: next - at };
      at = next;
    }
  }

  add({ from, count, seeds, seconds, failures, counts }) {
    const { state } = this;
    const isKnown = ({ seed }) => state.failures.some((failure) => failure.seed === seed);
    state.failures.push(...failures.filter((failure) => !isKnown(failure)));
    // A range that ended early, by a crash or by many failures, does not count, and is run again.
    if (seeds === count) {
      state.seeds += seeds;
      state.seconds += seconds;
      for (const [name, number] of Object.entries(counts)) state.counts[name] = (state.counts[name] ?? 0) + number;
      state.ranges = merged([...state.ranges, [from, from + count - 1]]);
    }
    this.#save();
    if (performance.now() - this.#lineMs < linePeriodMs) return;
    this.#lineMs = performance.now();
    this.#options.say(`${state.seeds} seeds, ${state.failures.length} failed`);
  }

  #save() {
    const { file } = this.#options;
    if (file === undefined) return;
    writeFileSync(`${file}.new`, `${JSON.stringify(this.state, undefined, 2)}\n`);
    renameSync(`${file}.new`, file);
  }
}

/** Neighbours become one range, so that the list stays short. */
function merged(ranges) {
  const result = [];
  for (const [first, last] of [...ranges].sort(([one], [other]) => one - other)) {
    const before = result.at(-1);
    if (before !== undefined && before[1] + 1 === first) before[1] = last;
    else result.push([first, last]);
  }
  return result;
}
