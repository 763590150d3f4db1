/** The outcome of a call, as far as its client knows. */
export type Outcome<Output> =
  | { readonly kind: 'known'; readonly output: Output }
  /** The server reported that the call had no effect and will have none. */
  | { readonly kind: 'failed' }
  /** No answer, or an inconclusive one: the call may have taken effect at any time since, or never. */
  | { readonly kind: 'unknown' };

/** One call of one client. All times are of one monotonic clock: all clients run in the recording process. */
export interface Operation<Input, Output> {
  readonly client: number;
  /** The server that was asked, for reports. */
  readonly server?: string;
  readonly input: Input;
  readonly outcome: Outcome<Output>;
  /** Read before the request was sent. */
  readonly calledMs: number;
  /** Read when the answer was received. Meaningful only with a known outcome. */
  readonly returnedMs: number;
}

/** One line about an operation, for reports of violations. */
export function describeOperation(operation: Operation<unknown, unknown>): string {
  const { client, server, input, outcome, calledMs, returnedMs } = operation;
  const result = outcome.kind === 'known' ? JSON.stringify(outcome.output, plain) : outcome.kind;
  const time = `${calledMs.toFixed(2)}..${outcome.kind === 'known' ? returnedMs.toFixed(2) : '?'} ms`;
  return `client ${client} at ${server ?? 'a server'}, ${time}: ${JSON.stringify(input, plain)} -> ${result}`;
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`;
  return value instanceof Map ? Object.fromEntries(value) : value;
}
