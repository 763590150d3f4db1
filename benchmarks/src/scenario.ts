import type { MeasuredServer } from './servers/measured-server.ts';

/** The options of a scenario: a quick run shows in seconds that everything works, and its numbers mean little. */
export interface ScenarioSettings {
  readonly quick: boolean;
  /** Progress messages. */
  readonly log: (text: string) => void;
}

/** The compared number, and other numbers for the notes below the table. */
export interface Sample {
  readonly value: number;
  readonly details?: Readonly<Record<string, number>>;
}

/** One row of a table. */
export interface Row {
  readonly name: string;
  readonly work: string;
  readonly unit: string;
  /** The required number. */
  readonly target: Target;
}

/** A row whose number is a detail of the sample that another row takes. */
export interface FurtherRow extends Row {
  readonly detail: string;
}

/** What is measured together. `measure` gets a new server, or a new cluster, on an empty folder. */
export interface Scenario<Measured = MeasuredServer> extends Row {
  /** Rounds of each server in a full run; the median counts. Long scenarios run once. */
  readonly rounds: number;
  /** Further rows of the same run. */
  readonly furtherRows?: readonly FurtherRow[];
  /** Also measured on an empty handler, to show the limit of node:http2. */
  readonly withEmptyHandler?: boolean;
  measure(server: Measured, settings: ScenarioSettings): Promise<Sample>;
}

/** The names of its rows. */
export function rowNames({ name, furtherRows = [] }: Pick<Scenario, 'name' | 'furtherRows'>): readonly string[] {
  return [name, ...furtherRows.map((row) => row.name)];
}

/** One of the compared systems. */
export interface Contender<Measured> {
  readonly name: string;
  start(): Promise<Measured>;
}

/** Either a ratio to etcd in the same run, or a limit for Tenure's number alone. */
export type Target =
  | { readonly kind: 'ratioAtLeast' | 'ratioAtMost'; readonly bound: number }
  | { readonly kind: 'valueAtLeast' | 'valueAtMost'; readonly bound: number };
