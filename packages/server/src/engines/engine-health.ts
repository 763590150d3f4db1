import { EngineError } from './engine-error.ts';
import { type EngineTrouble, engineTroubles } from './engine-trouble.ts';

/** Whether what keeps the log can be asked. */
export type EngineState =
  | { readonly reachable: true }
  | {
      readonly reachable: false;
      readonly trouble: EngineTrouble;
      /** For an operator, with addresses and all that was said. */
      readonly reason: string;
    };

export interface EngineHealthOptions {
  /** Hears of each loss and each return, and of some further reasons for a loss: the first may tell little. */
  readonly onChange: (state: EngineState) => void;
  /** Hears of the first append that fails for a reason, and of the next when that was another reason. */
  readonly onAppendTrouble: (trouble: EngineTrouble, reason: string) => void;
}

/** Of one loss; an engine tries in vain many times, and words its reasons with times and ports that change. */
const maxToldReasons = 4;

/**
 * What an engine said last of the way to whoever keeps its log, and whether that takes entries: a database may answer
 * and take none, since it is full, say. An engine that has said nothing is well.
 */
export class EngineHealth {
  readonly #options: EngineHealthOptions;
  #state: EngineState = { reachable: true };
  /** Of the loss that lasts. */
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

  /** An append of this server failed. What a connection that broke says of it, `told` knows better. */
  appendFailed(error: Error): void {
    const trouble = error instanceof EngineError ? error.trouble : undefined;
    if (trouble === undefined || trouble === 'unreachable' || trouble === this.#appendTrouble) return;
    this.#appendTrouble = trouble;
    this.#options.onAppendTrouble(trouble, error.message);
  }

  /** The log has taken an entry, of any server. */
  entryTaken(): void {
    this.#appendTrouble = undefined;
  }

  /** For clients, why the log cannot be asked or takes nothing; undefined while it is well. */
  get problem(): (typeof engineTroubles)[EngineTrouble] | undefined {
    // A database that refuses an append is left and reached again: what it refused for says more than that.
    const trouble = this.#appendTrouble ?? (this.#state.reachable ? undefined : this.#state.trouble);
    return trouble === undefined ? undefined : engineTroubles[trouble];
  }
}
