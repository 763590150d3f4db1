import { leaseKeys, leaseOfKey } from './lease-load.ts';
import { methods, watchCreateRequest, watchReply } from '../wire/etcd-messages.ts';
import type { GrpcConnection } from '../wire/grpc-connection.ts';

/** Watches the keys of the leases and notes when each was deleted, in milliseconds of the monotonic clock. */
export class DeletionWatch {
  readonly deletedAtMs = new Map<number, number>();
  readonly #count: number;
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};
  /** Resolves when the keys of all leases are gone. */
  readonly allDeleted: Promise<void> = new Promise((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });

  private constructor(count: number) {
    this.#count = count;
    this.allDeleted.catch(() => {});
  }

  static async open(connection: GrpcConnection, count: number): Promise<DeletionWatch> {
    const watch = new DeletionWatch(count);
    await new Promise<void>((resolve, reject) => {
      const stream = connection.stream(methods.watch, (message) => {
        const { created, canceled, deletedKeys } = watchReply(message);
        if (canceled) watch.#reject(new Error('the watch was canceled'));
        if (created) resolve();
        watch.#note(deletedKeys);
      });
      stream.closed.then(() => watch.#reject(new Error('the watch ended')), watch.#reject);
      stream.closed.catch(reject);
      stream.send(watchCreateRequest(leaseKeys.key, leaseKeys.rangeEnd));
    });
    return watch;
  }

  #note(keys: readonly string[]): void {
    const nowMs = performance.now();
    for (const key of keys) {
      const id = leaseOfKey(key);
      if (this.deletedAtMs.has(id)) this.#reject(new Error(`the key of lease ${id} was deleted twice`));
      this.deletedAtMs.set(id, nowMs);
    }
    if (this.deletedAtMs.size === this.#count) this.#resolve();
  }

  /** Waits for the last deletion, `withinMs` at most. */
  async wait(withinMs: number): Promise<void> {
    const message = () => `${this.deletedAtMs.size} of ${this.#count} leases expired within ${withinMs} ms`;
    const timer = setTimeout(() => this.#reject(new Error(message())), withinMs);
    await this.allDeleted.finally(() => clearTimeout(timer));
  }
}
