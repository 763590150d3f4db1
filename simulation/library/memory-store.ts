import type { Schedule } from '@tenure/test-support';
import type { EntryKey, LeaseBackend } from '../../packages/client/src/backend/lease-backend.ts';
import { memoryBackend } from '../../packages/client/src/memory/memory-backend.ts';
import type { Coverage } from '../world/coverage.ts';
import { LibraryProcess } from './library-process.ts';
import type { LibraryFault } from './library-scenario.ts';
import type { LibraryStore } from './library-store.ts';
import { RemoteBackend } from './remote-backend.ts';
import type { StoreNetwork } from './store-network.ts';

interface MemoryStoreOptions {
  readonly schedule: Schedule;
  /** The rate of the store's clock, which measures the TTLs. */
  readonly clockRate: number;
  readonly network: StoreNetwork;
  readonly coverage: Coverage;
}

const never = new AbortController().signal;
const queues = ['lease', 'rw', 'semaphore', 'election'].flatMap((kind) => [`${kind}/nightly`, `${kind}/invoices`]);

/** The library's memory backend as a store that several processes share over a network. */
export class MemoryStore implements LibraryStore {
  readonly #options: MemoryStoreOptions;
  readonly #store: LeaseBackend;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    const { schedule, clockRate } = options;
    const clock = { schedule, monotonicRate: clockRate, wallRate: clockRate, wallIgnored: false };
    this.#store = memoryBackend({ clock: new LibraryProcess('store', clock) });
  }

  backendOf(process: LibraryProcess): LeaseBackend {
    const { schedule, network, coverage } = this.#options;
    return new RemoteBackend({ store: this.#store, process, schedule, network, coverage });
  }

  killed(): void {}

  async close(): Promise<void> {}

  disturb({ kind, amount }: LibraryFault): () => void {
    const { network } = this.#options;
    if (kind === 'outage') network.isDown = true;
    else if (kind === 'loss') network.lossChance = 0.05 + 0.45 * amount;
    else network.slowChance = 0.1 + 0.7 * amount;
    return () => {
      if (kind === 'outage') network.isDown = false;
      else if (kind === 'loss') network.lossChance = 0;
      else network.slowChance = 0;
    };
  }

  heal(): void {
    this.#options.network.heal();
  }

  async has({ name, id }: EntryKey): Promise<boolean> {
    return (await this.#store.list(name, never)).some((entry) => entry.id === id);
  }

  async ids(): Promise<readonly string[]> {
    const lists = await Promise.all(queues.map((queue) => this.#store.list(queue, never)));
    return lists.flat().map(({ id }) => id);
  }
}
