import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';

/** Counts the open calls of one kind, each of which holds memory for as long as its client likes. */
export class CallLimit {
  readonly #maxCalls: number;
  readonly #what: string;
  #calls = 0;

  constructor(maxCalls: number, what: string) {
    this.#maxCalls = maxCalls;
    this.#what = what;
  }

  get calls(): number {
    return this.#calls;
  }

  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#calls >= this.#maxCalls) {
      const text = `tenure: this server has ${this.#maxCalls} ${this.#what}, which is the limit; use another server`;
      throw new GrpcStatus(GrpcCode.resourceExhausted, text);
    }
    this.#calls += 1;
    try {
      return await call();
    } finally {
      this.#calls -= 1;
    }
  }
}
