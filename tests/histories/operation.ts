/** What became of a call, as far as its client was told. */
export type Outcome<Output> =
  | { readonly kind: 'known'; readonly output: Output }
  /** The server said that it did not do it and will not. */
  | { readonly kind: 'failed' }
  /** No answer, or one that leaves it open: it may have taken effect at any time since the call, or never. */
  | { readonly kind: 'unknown' };

/** One call of one client, with times of one monotonic clock: all clients run in the process that records them. */
export interface Operation<Input, Output> {
  readonly client: number;
  /** The server that was asked, for reports. */
  readonly server?: string;
  readonly input: Input;
  readonly outcome: Outcome<Output>;
  /** Read before the request was handed to the network. */
  readonly calledMs: number;
  /** Read when the answer was there. Without a meaning unless the outcome is known. */
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
