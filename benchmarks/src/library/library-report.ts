import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LibraryResult, LibraryRun } from './library-result.ts';

const resultsFile = fileURLToPath(new URL('../../library-results.json', import.meta.url));
const readmeFile = fileURLToPath(new URL('../../README.md', import.meta.url));
const startMark = '<!-- library results: written by npm run bench -- library -->';
const endMark = '<!-- end of library results -->';

const columns = [
  'library',
  'store',
  'one after the other, 1/s',
  '32 at once, 1/s',
  'wake-up p50, ms',
  'p99, ms (of)',
  'CPU, ms/min',
  'requests/lock/min',
];

/** Stores the run and regenerates the table of the README. */
export function writeLibraryReport(run: LibraryRun): void {
  writeFileSync(resultsFile, `${JSON.stringify(run, null, 2)}\n`);
  const readme = readFileSync(readmeFile, 'utf8');
  const start = readme.indexOf(startMark);
  const end = readme.indexOf(endMark);
  if (start === -1 || end < start) throw new Error('benchmarks/README.md has lost the marks of the libraries');
  writeFileSync(readmeFile, `${readme.slice(0, start)}${startMark}\n\n${libraryTable(run)}\n${readme.slice(end)}`);
}

export function libraryTable(run: LibraryRun): string {
  const { date, processor, cores, node, versions, loadBefore, loadAfter } = run;
  return [
    `| ${columns.join(' | ')} |`,
    `|${columns.map(() => '---|').join('')}`,
    ...run.results.map(row),
    '',
    `Measured on ${date}: ${processor}, ${cores} cores, Node ${node}, ${versions}; load of the machine before: ` +
      `${loadBefore}, after: ${loadAfter}.`,
    '',
  ].join('\n');
}

function row({ name, store, turns, wakeUpMs, holding }: LibraryResult): string {
  const cells = [
    name,
    store,
    format(turns.one),
    format(turns.many),
    format(wakeUpMs.p50),
    `${format(wakeUpMs.p99)} (${wakeUpMs.count})`,
    format(holding.cpuMs),
    format(holding.requestsPerLock),
  ];
  return `| ${cells.join(' | ')} |`;
}

function format(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}
