import { methods, putRequest, watchCreateRequest, watchReply } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const putIntervalMs = 20;
const watched = { key: 'watched/', rangeEnd: 'watched0' };
/** The timeout of an event. */
const patienceMs = 30_000;

/**
 * Puts keys at fixed times, and measures for each the delay from sending it to its event on another connection's watch.
 */
export class WatchLatency {
  readonly #address: string;
  readonly #sentAtMs: number[] = [];
  readonly #latenciesMs: number[] = [];
  #allCame: () => void = () => {};

  /** `address` is host:port. */
  constructor(address: string) {
    this.#address = address;
  }

  /** Every latency in ms, in the order of the events. */
  async measure(durationMs: number): Promise<readonly number[]> {
    const [writer, watcher] = [await GrpcConnection.open(this.#address), await GrpcConnection.open(this.#address)];
    try {
      await this.#watch(watcher);
      const puts: Promise<Buffer>[] = [];
      const startedMs = performance.now();
      for (let put = 0; put * putIntervalMs < durationMs; put += 1) {
        const waitMs = startedMs + put * putIntervalMs - performance.now();
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
        this.#sentAtMs.push(performance.now());
        puts.push(writer.unary(methods.put, putRequest(`${watched.key}${put}`, 'v'.repeat(64))));
      }
      await Promise.all(puts);
      await this.#last();
      return this.#latenciesMs;
    } finally {
      writer.close();
      watcher.close();
    }
  }

  #watch(connection: GrpcConnection): Promise<void> {
    return new Promise((resolve, reject) => {
      const stream = connection.stream(methods.watch, (message) => {
        const nowMs = performance.now();
        const { created, canceled, putKeys } = watchReply(message);
        if (canceled) reject(new Error('the watch was canceled'));
        if (created) resolve();
        for (const key of putKeys) this.#came(Number(key.slice(watched.key.length)), nowMs);
      });
      stream.closed.catch(reject);
      stream.send(watchCreateRequest(watched.key, watched.rangeEnd));
    });
  }

  #came(put: number, nowMs: number): void {
    this.#latenciesMs.push(nowMs - (this.#sentAtMs[put] ?? nowMs));
    if (this.#latenciesMs.length === this.#sentAtMs.length) this.#allCame();
  }

  async #last(): Promise<void> {
    if (this.#latenciesMs.length === this.#sentAtMs.length) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#allCame = resolve;
      timer = setTimeout(() => reject(new Error('not every event of a put came')), patienceMs);
    }).finally(() => clearTimeout(timer));
  }
}
