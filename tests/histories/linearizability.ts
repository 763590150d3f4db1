import { describeOperation, type Operation } from './operation.ts';

/** A sequential object. Its states are strings, so that equal states can be recognized. */
export interface SequentialModel<Input, Output> {
  readonly initial: string;
  /**
   * The state after this call; undefined if the object cannot give this output in this state. Without an output (the
   * client got no answer) every output is possible.
   */
  step(state: string, input: Input, output: Output | undefined): string | undefined;
}

export type Verdict =
  | { readonly kind: 'linearizable' }
  /** `explanation`: how far an order could be found, and at which calls it ended. */
  | { readonly kind: 'violation'; readonly explanation: string }
  /** The search was aborted after `maxSteps`. */
  | { readonly kind: 'undecided' };

const defaultMaxSteps = 2_000_000;

/**
 * Whether there is an order of these calls that respects real time and in which the model gives these answers: the
 * search of Wing and Gong with Lowe's memoization, as in Porcupine. A call with an unknown outcome may be placed
 * anywhere after its beginning or left out; a failed one is left out.
 */
export function checkLinearizable<Input, Output>(
  model: SequentialModel<Input, Output>,
  operations: readonly Operation<Input, Output>[],
  maxSteps = defaultMaxSteps,
): Verdict {
  return new Search(model, operations).run(maxSteps);
}

interface Frame {
  /** The call that was placed here, as an index of `known`, or of `unknown` after those. */
  chosen: number;
  /** The state before it. */
  readonly state: string;
}

class Search<Input, Output> {
  readonly #model: SequentialModel<Input, Output>;
  /** Ordered by their beginnings. */
  readonly #known: readonly Operation<Input, Output>[];
  readonly #unknown: readonly Operation<Input, Output>[];
  readonly #isOrdered: Uint8Array;
  /** Every set of placed calls with its resulting state, from which no order was found. */
  readonly #tried = new Set<string>();
  readonly #frames: Frame[] = [];
  #knownOrdered = 0;
  /** All known calls before this index are placed. */
  #firstOpen = 0;
  #deepest = { depth: -1, state: '', open: [] as Operation<Input, Output>[] };

  constructor(model: SequentialModel<Input, Output>, operations: readonly Operation<Input, Output>[]) {
    this.#model = model;
    const byCall = operations.toSorted((one, other) => one.calledMs - other.calledMs);
    this.#known = byCall.filter(({ outcome }) => outcome.kind === 'known');
    this.#unknown = byCall.filter(({ outcome }) => outcome.kind === 'unknown');
    this.#isOrdered = new Uint8Array(this.#known.length + this.#unknown.length);
  }

  run(maxSteps: number): Verdict {
    let state = this.#model.initial;
    let from = 0;
    for (let step = 0; step < maxSteps; step += 1) {
      if (this.#knownOrdered === this.#known.length) return { kind: 'linearizable' };
      const next = this.#choose(state, from);
      if (next !== undefined) {
        this.#frames.push({ chosen: next.chosen, state });
        state = next.state;
        from = 0;
        continue;
      }
      this.#note(state);
      const last = this.#frames.pop();
      if (last === undefined) return { kind: 'violation', explanation: this.#explain() };
      this.#undo(last.chosen);
      state = last.state;
      from = last.chosen + 1;
    }
    return { kind: 'undecided' };
  }

  /** Places the next call that is possible here and was not tried, from index `from` on. */
  #choose(state: string, from: number): { chosen: number; state: string } | undefined {
    // A call that began after another one ended cannot be placed before it. Calls with unknown outcomes come last: most
    // took effect where no read observed it, or not at all.
    const endMs = this.#firstEndMs();
    for (let at = Math.max(from, this.#firstOpen); at < this.#isOrdered.length; at += 1) {
      const operation = this.#operation(at);
      if (operation.calledMs > endMs) {
        if (at >= this.#known.length) return undefined;
        at = this.#known.length - 1;
        continue;
      }
      if (this.#isOrdered[at] === 1) continue;
      const output = operation.outcome.kind === 'known' ? operation.outcome.output : undefined;
      const next = this.#model.step(state, operation.input, output);
      if (next === undefined || (output === undefined && this.#isIdle(operation, state, next))) continue;
      this.#do(at);
      const key = this.#key(next);
      if (!this.#tried.has(key)) {
        this.#tried.add(key);
        return { chosen: at, state: next };
      }
      this.#undo(at);
    }
    return undefined;
  }

  /** Whether this call with an unknown outcome can as well be left out, or the one placed directly before it. */
  #isIdle({ input }: Operation<Input, Output>, state: string, next: string): boolean {
    const last = this.#frames.at(-1);
    if (next === state) return true;
    return (
      last !== undefined && last.chosen >= this.#known.length && this.#model.step(last.state, input, undefined) === next
    );
  }

  /** The first end of the calls that are not placed. */
  #firstEndMs(): number {
    let endMs = Infinity;
    for (let at = this.#firstOpen; at < this.#known.length; at += 1) {
      const { calledMs, returnedMs } = this.#operation(at);
      if (calledMs > endMs) break;
      if (this.#isOrdered[at] === 0) endMs = Math.min(endMs, returnedMs);
    }
    return endMs;
  }

  #do(at: number): void {
    this.#isOrdered[at] = 1;
    if (at >= this.#known.length) return;
    this.#knownOrdered += 1;
    while (this.#firstOpen < this.#known.length && this.#isOrdered[this.#firstOpen] === 1) this.#firstOpen += 1;
  }

  #undo(at: number): void {
    this.#isOrdered[at] = 0;
    if (at >= this.#known.length) return;
    this.#knownOrdered -= 1;
    this.#firstOpen = Math.min(this.#firstOpen, at);
  }

  /** Short, since few calls after the first open one are placed: only those that overlap with it. */
  #key(state: string): string {
    const parts: number[] = [this.#firstOpen];
    let left = this.#knownOrdered - this.#firstOpen;
    for (let at = this.#firstOpen; left > 0; at += 1) {
      if (this.#isOrdered[at] === 0) continue;
      parts.push(at);
      left -= 1;
    }
    for (let at = this.#known.length; at < this.#isOrdered.length; at += 1) {
      if (this.#isOrdered[at] === 1) parts.push(at);
    }
    return `${parts.join(',')} ${state}`;
  }

  #operation(at: number): Operation<Input, Output> {
    const found = at < this.#known.length ? this.#known[at] : this.#unknown[at - this.#known.length];
    return found as Operation<Input, Output>;
  }

  #note(state: string): void {
    if (this.#knownOrdered <= this.#deepest.depth) return;
    const endMs = this.#firstEndMs();
    const open = this.#known.filter((operation, at) => this.#isOrdered[at] === 0 && operation.calledMs <= endMs);
    this.#deepest = { depth: this.#knownOrdered, state, open };
  }

  #explain(): string {
    const { depth, state, open } = this.#deepest;
    const stuck = open.map((operation) => `  ${describeOperation(operation)}`).join('\n');
    const reached = `${depth} of ${this.#known.length} calls can be ordered, up to the state ${JSON.stringify(state)}`;
    return `${reached}; then none of\n${stuck}`;
  }
}
