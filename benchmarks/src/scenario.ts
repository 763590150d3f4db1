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

/** One row of a table. `measure` gets a new server, or a new cluster, on an empty folder. */
export interface Scenario<Measured = MeasuredServer> {
  readonly name: string;
  readonly work: string;
  readonly unit: string;
  /** Rounds of each server in a full run; the median counts. Long scenarios run once. */
  readonly rounds: number;
  /** The required number. */
  readonly target: Target;
  /** Also measured on an empty handler, to show the limit of node:http2. */
  readonly withEmptyHandler?: boolean;
  measure(server: Measured, settings: ScenarioSettings): Promise<Sample>;
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
