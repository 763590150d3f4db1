/** Whether what keeps the log can be asked. */
export interface EngineState {
  readonly reachable: boolean;
  /** In words, when it is not reachable; else empty. */
  readonly reason: string;
}

/** What an engine said last of the way to whoever keeps its log. An engine that has said nothing is reachable. */
export class EngineHealth {
  readonly #onChange: (state: EngineState) => void;
  #state: EngineState = { reachable: true, reason: '' };

  /** `onChange` hears of each loss and each return once, however often the engine tries in vain between them. */
  constructor(onChange: (state: EngineState) => void) {
    this.#onChange = onChange;
  }

  told(state: EngineState): void {
    const isNews = state.reachable !== this.#state.reachable;
    this.#state = state;
    if (isNews) this.#onChange(state);
  }

  /** For an operator, why the log cannot be asked; undefined while it can. */
  get problem(): string | undefined {
    const { reachable, reason } = this.#state;
    return reachable ? undefined : `what keeps the log cannot be reached: ${reason}`;
  }
}
