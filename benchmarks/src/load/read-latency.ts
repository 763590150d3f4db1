import { methods, rangeRequest } from '../wire/etcd-messages.ts';
import type { GrpcConnection } from '../wire/grpc-connection.ts';

/** Reads one key, one read at a time, until it is stopped; returns every latency in ms. */
export class ReadLatency {
  readonly latenciesMs: number[] = [];
  #stopped = false;
  readonly #running: Promise<void>;

  constructor(connection: GrpcConnection, key = 'read') {
    this.#running = this.#read(connection, rangeRequest(key));
    this.#running.catch(() => {});
  }

  async #read(connection: GrpcConnection, request: Buffer): Promise<void> {
    while (!this.#stopped) {
      const startedMs = performance.now();
      await connection.unary(methods.range, request);
      this.latenciesMs.push(performance.now() - startedMs);
    }
  }

  async stop(): Promise<readonly number[]> {
    this.#stopped = true;
    await this.#running;
    return this.latenciesMs;
  }
}
