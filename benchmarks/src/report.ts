import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isReached, ratioOf } from './result.ts';
import type { Measured, Result } from './result.ts';
import { costDetail, generatorRateDetail } from './load/load-cost.ts';
import { rowNames } from './scenario.ts';
import { allScenarios } from './scenarios/all-scenarios.ts';
import { clusterScenarios } from './scenarios/cluster-scenarios.ts';

const resultsFile = fileURLToPath(new URL('../results.json', import.meta.url));
const readmeFile = fileURLToPath(new URL('../README.md', import.meta.url));
const startMark = '<!-- results: written by npm run bench -->';
const endMark = '<!-- end of results -->';

/** Stores the results of this run together with earlier ones of other scenarios, and regenerates the table. */
export function writeReport(results: readonly Result[]): void {
  const before = existsSync(resultsFile) ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as Result[]) : [];
  const newest = new Map([...before, ...results].map((result) => [result.name, result]));
  const names = [...allScenarios.flatMap(rowNames), ...clusterScenarios.flatMap(rowNames)];
  const kept = names.flatMap((name) => newest.get(name) ?? []);
  writeFileSync(resultsFile, `${JSON.stringify(kept, null, 2)}\n`);
  const readme = readFileSync(readmeFile, 'utf8');
  const start = readme.indexOf(startMark);
  const end = readme.indexOf(endMark);
  if (start === -1 || end < start) throw new Error('benchmarks/README.md has lost the marks of its table');
  writeFileSync(readmeFile, `${readme.slice(0, start)}${startMark}\n\n${tables(kept)}\n${readme.slice(end)}`);
}

/** The tables in markdown, one server and then three, each with its machine and its other numbers. */
export function tables(results: readonly Result[]): string {
  const clusterNames = new Set(clusterScenarios.flatMap(rowNames));
  const isOfCluster = ({ name }: Result) => clusterNames.has(name);
  const single = results.filter((result) => !isOfCluster(result));
  const several = results.filter(isOfCluster);
  const parts = [
    ...(single.length > 0 ? [table(single)] : []),
    ...(several.length > 0 ? [`### Three servers\n\n${table(several)}`] : []),
  ];
  return parts.join('\n');
}

function table(results: readonly Result[]): string {
  const lines = [
    '| work | etcd | Tenure | ratio | target | reached |',
    '|---|---|---|---|---|---|',
    ...results.map(row),
  ];
  const machines = new Set(results.map(machineLine));
  const others = results.flatMap(detailLines);
  if (others.length > 0) lines.push('', 'Other numbers of the same runs:', '', ...others);
  return [...lines, '', ...machines, ''].join('\n');
}

function row(result: Result): string {
  const { work, unit, target, medians } = result;
  const ratio = ratioOf(result);
  const bound = target.kind.endsWith('AtLeast') ? `${target.bound} or more` : `${target.bound} or less`;
  const wanted = target.kind.startsWith('ratio') ? `ratio ${bound}` : `${bound}${unit === 'ratio' ? '' : ` ${unit}`}`;
  const cells = [
    `${work} (\`${result.name}\`)`,
    cell(medians['etcd'], unit),
    cell(medians['Tenure'], unit),
    ratio === undefined ? '' : ratio.toFixed(2),
    wanted,
    { true: 'yes', false: '**no**', undefined: 'not measured' }[
      String(isReached(result)) as 'true' | 'false' | 'undefined'
    ],
  ];
  return `| ${cells.join(' | ')} |`;
}

function cell(measured: Measured | undefined, unit: string): string {
  if (measured?.value === undefined || measured.value === null) return 'none';
  const costUs = measured.details[costDetail];
  const cost = costUs === undefined ? '' : `, ${format(costUs)} µs`;
  return `${format(measured.value)}${unit === 'ratio' ? '' : ` ${unit}`}${cost}`;
}

function detailLines(result: Result): string[] {
  const etcd = result.medians['etcd']?.value;
  const empty = result.medians['empty handler']?.value;
  const handler =
    typeof empty === 'number' && typeof etcd === 'number'
      ? [
          `- \`${result.name}\`, empty handler on node:http2: ${format(empty)} ${result.unit}, ` +
            `${(empty / etcd).toFixed(2)} of etcd`,
        ]
      : [];
  const details = Object.entries(result.medians).flatMap(([server, { value, details }]) => {
    const beside = server.startsWith('Tenure ') && value !== null ? [[result.unit, value] as const] : [];
    const others = Object.entries(details).filter(([name]) => name !== costDetail);
    const numbers = [...beside, ...others].map(([name, number]) => `${name}: ${format(number)}`);
    return numbers.length === 0 ? [] : [`- \`${result.name}\`, ${server}: ${numbers.join('; ')}`];
  });
  return [...handler, ...generatorLine(result), ...details];
}

/** Tenure's rate with etcd's client over etcd's. */
function generatorLine({ name, medians }: Result): string[] {
  const etcd = medians['etcd']?.details[generatorRateDetail];
  const tenure = medians['Tenure']?.details[generatorRateDetail];
  return etcd === undefined || tenure === undefined
    ? []
    : [`- \`${name}\`, with etcd's client: ${(tenure / etcd).toFixed(2)} of etcd`];
}

function machineLine({ machine, rounds }: Result): string {
  const { date, processor, cores, memoryGib, kernel, node, h2load, postgres, loadBefore } = machine;
  const etcd = machine.etcdOrigin === undefined ? machine.etcd : `${machine.etcd} (${machine.etcdOrigin})`;
  const database = postgres === undefined ? '' : `, PostgreSQL ${postgres}`;
  const busy = loadBefore === undefined ? '' : `; load of the machine before: ${loadBefore}`;
  return (
    `Measured on ${date}: ${processor}, ${cores} cores, ${memoryGib} GiB, Linux ${kernel}, Node ${node}, ` +
    `etcd ${etcd}, h2load ${h2load}${database}; ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}${busy}.`
  );
}

function format(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}
