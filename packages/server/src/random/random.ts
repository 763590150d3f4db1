/** Where random numbers come from. Whatever needs one is handed it, so that a simulator can hand in a seeded one. */
export interface Random {
  /** Fit for secrets: they cannot be foretold from earlier ones. */
  bytes(count: number): Buffer;
  /** From 0 up to, and without, 1. Not fit for secrets. */
  fraction(): number;
}
