/** A source of random numbers. It is injected everywhere, so that a simulator can inject a seeded one. */
export interface Random {
  /** Suitable for secrets: earlier bytes do not predict later ones. */
  bytes(count: number): Buffer;
  /** From 0 inclusive to 1 exclusive. Not suitable for secrets. */
  fraction(): number;
}
