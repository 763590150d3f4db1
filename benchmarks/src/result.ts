import { median } from './load/percentile.ts';
import type { Machine } from './machine.ts';
import type { FurtherRow, Row, Sample, Scenario, Target } from './scenario.ts';

/** The results of one row, as stored in results.json; NaN is stored as null. */
export interface Result {
  readonly name: string;
  readonly work: string;
  readonly unit: string;
  readonly target: Target;
  readonly rounds: number;
  readonly machine: Machine;
  /** Medians over the rounds, by the name of the server. */
  readonly medians: Readonly<Record<string, Measured>>;
}

export interface Measured {
  readonly value: number | null;
  readonly details: Readonly<Record<string, number>>;
}

/** The result of a scenario, and one for each further row, whose number is not repeated as a detail. */
export function makeResults(
  scenario: Omit<Scenario, 'measure'>,
  machine: Machine,
  samples: ReadonlyMap<string, readonly Sample[]>,
): readonly Result[] {
  const further = scenario.furtherRows ?? [];
  const middles = [...samples].map(([server, taken]) => [server, middleOf(taken)] as const);
  const rounds = Math.max(...[...samples.values()].map((taken) => taken.length));
  const result = ({ name, work, unit, target }: Row, read: (middle: Measured) => Measured): Result => {
    const medians = Object.fromEntries(middles.map(([server, middle]) => [server, read(middle)]));
    return { name, work, unit, target, rounds, machine, medians };
  };
  return [
    result(scenario, ({ value, details }) => ({ value, details: withoutThoseOf(further, details) })),
    ...further.map((row) => result(row, ({ details }) => ({ value: details[row.detail] ?? null, details: {} }))),
  ];
}

function withoutThoseOf(rows: readonly FurtherRow[], details: Measured['details']): Measured['details'] {
  return Object.fromEntries(Object.entries(details).filter(([name]) => rows.every(({ detail }) => detail !== name)));
}

function middleOf(samples: readonly Sample[]): Measured {
  const value = median(samples.map((sample) => sample.value));
  const names = Object.keys(samples[0]?.details ?? {});
  const details = names.map((name) => [name, median(samples.map((sample) => sample.details?.[name] ?? Number.NaN))]);
  return { value: Number.isNaN(value) ? null : value, details: Object.fromEntries(details) };
}

/** Tenure's number over etcd's, from the same run; undefined where one of them has none. */
export function ratioOf(result: Result): number | undefined {
  const tenure = result.medians['Tenure']?.value;
  const etcd = result.medians['etcd']?.value;
  return typeof tenure === 'number' && typeof etcd === 'number' && etcd !== 0 ? tenure / etcd : undefined;
}

/** Whether the target is reached; undefined while Tenure was not measured. */
export function isReached(result: Result): boolean | undefined {
  const { kind, bound } = result.target;
  const number = kind.startsWith('ratio') ? ratioOf(result) : result.medians['Tenure']?.value;
  if (number === undefined || number === null) return undefined;
  return kind.endsWith('AtLeast') ? number >= bound : number <= bound;
}
