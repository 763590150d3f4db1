export interface BudgetOptions {
  /** Counts the same for all connections together. */
  readonly total?: Budget;
  /** Called by every `take` that leaves the budget beyond its limit. */
  readonly onExceeded?: () => void;
  /** Called by every `giveBack`. */
  readonly onGivenBack?: () => void;
}

/**
 * Counts what is held for one connection (bytes, or calls) and, through `total`, for all of them, against a limit for
 * each. Who takes an amount gives back exactly as much; a connection that breaks gives back what it has taken by
 * ending its calls.
 */
export class Budget {
  readonly #limit: number;
  readonly #total: Budget | undefined;
  readonly #onExceeded: (() => void) | undefined;
  readonly #onGivenBack: (() => void) | undefined;
  #taken = 0;

  constructor(limit: number, { total, onExceeded, onGivenBack }: BudgetOptions = {}) {
    this.#limit = limit;
    this.#total = total;
    this.#onExceeded = onExceeded;
    this.#onGivenBack = onGivenBack;
  }

  get taken(): number {
    return this.#taken;
  }

  /** True while the limit has not been reached here. What the total does about its own limit is its `onExceeded`. */
  get hasRoom(): boolean {
    return this.#taken < this.#limit;
  }

  /** Takes an amount, beyond the limit too: one message may pass it, and `hasRoom` then says so to the next. */
  take(amount: number): void {
    this.#taken += amount;
    this.#total?.take(amount);
    if (this.#taken > this.#limit) this.#onExceeded?.();
  }

  giveBack(amount: number): void {
    this.#taken -= amount;
    this.#total?.giveBack(amount);
    this.#onGivenBack?.();
  }
}
