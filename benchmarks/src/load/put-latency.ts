import { methods, putRequest } from '../wire/etcd-messages.ts';
import type { GrpcConnection } from '../wire/grpc-connection.ts';

const writers = 8;

/** Writes from a few callers, each waiting for its reply, until it is stopped; returns every latency in ms. */
export class PutLatency {
  readonly latenciesMs: number[] = [];
  #stopped = false;
  readonly #running: Promise<void[]>;

  constructor(connection: GrpcConnection) {
    this.#running = Promise.all(Array.from({ length: writers }, (_, writer) => this.#write(connection, writer)));
    this.#running.catch(() => {});
  }

  async #write(connection: GrpcConnection, writer: number): Promise<void> {
    const message = putRequest(`writer/${writer}`, 'v'.repeat(64));
    while (!this.#stopped) {
      const startedMs = performance.now();
      await connection.unary(methods.put, message);
      this.latenciesMs.push(performance.now() - startedMs);
    }
  }

  async stop(): Promise<readonly number[]> {
    this.#stopped = true;
    await this.#running;
    return this.latenciesMs;
  }
}
