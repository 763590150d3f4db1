/** A shape while it is being read. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
