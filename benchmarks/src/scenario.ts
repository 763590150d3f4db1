import type { MeasuredServer } from './servers/measured-server.ts';

/** What a scenario may vary with: a quick run shows that everything works, in seconds, and its numbers mean little. */
export interface ScenarioSettings {
  readonly quick: boolean;
  /** Progress, for whoever watches. */
  readonly log: (text: string) => void;
}

/** The one number that is compared, and others worth a line in the table. */
export interface Sample {
  readonly value: number;
  readonly details?: Readonly<Record<string, number>>;
}

/** One row of a table. `measure` gets a server, or a cluster, that has just started on an empty folder. */
export interface Scenario<Measured = MeasuredServer> {
  readonly name: string;
  readonly work: string;
  readonly unit: string;
  /** Rounds of each server in a full run; the median counts. Long scenarios run once. */
  readonly rounds: number;
  /** What the number must reach. */
  readonly target: Target;
  /** Also measured on a handler that does nothing, to show what node:http2 allows. */
  readonly withEmptyHandler?: boolean;
  measure(server: Measured, settings: ScenarioSettings): Promise<Sample>;
}

/** One of the systems that are compared. */
export interface Contender<Measured> {
  readonly name: string;
  start(): Promise<Measured>;
}

/** Either a ratio to etcd in the same run, or a bound of Tenure's number alone. */
export type Target =
  | { readonly kind: 'ratioAtLeast' | 'ratioAtMost'; readonly bound: number }
  | { readonly kind: 'valueAtLeast' | 'valueAtMost'; readonly bound: number };
