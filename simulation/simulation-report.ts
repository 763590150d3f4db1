export interface SimulationReport {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly traceHash: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly wronglyAwakeMs: number;
}

export interface SimulationOptions {
  readonly hidesSuspension?: boolean;
  /** Gets the trace, one line an event. */
  readonly print?: (line: string) => void;
}
