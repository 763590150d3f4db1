export interface BudgetOptions {
  /** The total for all connections. */
  readonly total?: Budget;
  /** Called by every `take` that leaves the budget beyond its limit. */
  readonly onExceeded?: () => void;
  /** Called by every `giveBack`. */
  readonly onGivenBack?: () => void;
}

/**
 * Counts the amount held for one connection (bytes, or calls) and, through `total`, for all of them, each against a
 * limit. Every taken amount is given back exactly; a broken connection gives back its amount by ending its calls.
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

  /** True while the limit has not been reached here. The total enforces its own limit with `onExceeded`. */
  get hasRoom(): boolean {
    return this.#taken < this.#limit;
  }

  /** Whether the limit is exceeded, and would still be after this amount was given back. */
  isExceededBeyond(amount: number): boolean {
    return this.#taken - amount > this.#limit;
  }

  /** Takes an amount, even beyond the limit: one message may exceed it, and `hasRoom` then refuses the next. */
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
