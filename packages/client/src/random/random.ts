/** The library's only source of random values. They have only to differ from those of every other process. */
export interface Random {
  /** A random UUID of version 4. */
  uuid(): string;
  /** 64 random bits. */
  uint64(): bigint;
}
