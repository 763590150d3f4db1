/** The used part of redlock 4, which has no types of its own. */
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  export interface Lock {
    unlock(): PromiseLike<void>;
    extend(ttlMs: number): PromiseLike<Lock>;
  }

  export default class Redlock {
    constructor(clients: readonly Redis[], options?: { readonly retryCount?: number });
    lock(resource: string, ttlMs: number): PromiseLike<Lock>;
  }
}
