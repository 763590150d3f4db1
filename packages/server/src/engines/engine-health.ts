import { EngineError } from './engine-error.ts';
import { type EngineTrouble, engineTroubles } from './engine-trouble.ts';

/** Whether the storage of the log can be reached. */
export type EngineState =
  | { readonly reachable: true }
  | {
      readonly reachable: false;
      readonly trouble: EngineTrouble;
      /** For an operator, with addresses and the full error texts. */
      readonly reason: string;
    };

export interface EngineHealthOptions {
  /**
   * Called at each loss and each reconnect, and for some further reasons of a loss, since the first may be unspecific.
   */
  readonly onChange: (state: EngineState) => void;
  /** Called for the first append that fails for a reason, and for the next failure with a different reason. */
  readonly onAppendTrouble: (trouble: EngineTrouble, reason: string) => void;
}

/** Reasons logged per loss: an engine retries many times, and its error texts contain times and ports that change. */
const maxToldReasons = 4;

/**
 * The last known state of the connection to the log's storage, and of its ability to accept appends: a database may
 * answer and refuse every append, for example when it is full. An engine without a report is healthy.
 */
export class EngineHealth {
  readonly #options: EngineHealthOptions;
  #state: EngineState = { reachable: true };
  /** The reasons of the current loss. */
  #reasons = new Set<string>();
  #appendTrouble: EngineTrouble | undefined;

  constructor(options: EngineHealthOptions) {
    this.#options = options;
  }

  told(state: EngineState): void {
    const hasChanged = state.reachable !== this.#state.reachable;
    this.#state = state;
    if (hasChanged) this.#reasons.clear();
    const isNewReason = !state.reachable && !this.#reasons.has(state.reason) && this.#reasons.size < maxToldReasons;
    if (isNewReason) this.#reasons.add(state.reason);
    if (hasChanged || isNewReason) this.#options.onChange(state);
  }

  /** An append of this server failed. For a broken connection, `told` has the more exact reason. */
  appendFailed(error: Error): void {
    const trouble = error instanceof EngineError ? error.trouble : undefined;
    if (trouble === undefined || trouble === 'unreachable' || trouble === this.#appendTrouble) return;
    this.#appendTrouble = trouble;
    this.#options.onAppendTrouble(trouble, error.message);
  }

  /** The log has accepted an entry, of any server. */
  entryTaken(): void {
    this.#appendTrouble = undefined;
  }

  /** For clients: why the log cannot be reached or refuses appends; undefined while it is healthy. */
  get problem(): (typeof engineTroubles)[EngineTrouble] | undefined {
    // After a refused append the engine reconnects to the database; the reason of the refusal says more than the
    // reconnect.
    const trouble = this.#appendTrouble ?? (this.#state.reachable ? undefined : this.#state.trouble);
    return trouble === undefined ? undefined : engineTroubles[trouble];
  }
}
