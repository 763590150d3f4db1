import type { EntryKey, LeaseBackend } from '../../packages/client/src/backend/lease-backend.ts';
import { EtcdClient } from '../../packages/client/src/etcd/client/etcd-client.ts';
import { EntryKeys } from '../../packages/client/src/etcd/entry-keys.ts';
import { EtcdBackend } from '../../packages/client/src/etcd/etcd-backend.ts';
import { Faults } from '../faults.ts';
import type { World } from '../world/world.ts';
import type { LibraryProcess } from './library-process.ts';
import type { LibraryFault, LibraryScenario } from './library-scenario.ts';
import type { LibraryStore } from './library-store.ts';
import type { ResendChecker } from './resend-checker.ts';
import { SeededValues } from './seeded-values.ts';
import { SimulatedChannel } from './simulated-channel.ts';

const callTimeoutMs = 1_000;
const prefix = 'tenure/';
const keys = new EntryKeys(prefix);
/** The keys of all entries. */
const everything = { key: prefix, rangeEnd: 'tenure0' } as const;
const plain = {
  limit: 0,
  revision: 0,
  sortOrder: 0,
  sortTarget: 0,
  minModRevision: 0,
  maxModRevision: 0,
  minCreateRevision: 0,
  maxCreateRevision: 0,
  serializable: true,
  keysOnly: true,
  countOnly: false,
} as const;

interface Opened {
  readonly backend: LeaseBackend;
  readonly client: EtcdClient;
}

/** The library's etcd backend over the servers of a world. */
export class EtcdStore implements LibraryStore {
  readonly #world: World;
  readonly #resends: ResendChecker;
  readonly #serverFaults: Faults;
  readonly #opened = new Map<LibraryProcess, Opened>();

  constructor(world: World, { serverFaults, engineTrouble }: LibraryScenario, resends: ResendChecker) {
    this.#world = world;
    this.#resends = resends;
    this.#serverFaults = new Faults(world);
    world.start();
    this.#serverFaults.start(serverFaults, engineTrouble);
  }

  backendOf(process: LibraryProcess): LeaseBackend {
    const { network, machines } = this.#world;
    const resends = this.#resends;
    const end = { name: process.name, clock: process.node };
    const endpoints = machines.map(({ process: { address } }) => address);
    const client = new EtcdClient({ endpoints, timeoutMs: callTimeoutMs }, process, ({ address }) => {
      return new SimulatedChannel({ process, connect: () => network.connect(end, address), resends });
    });
    const values = new SeededValues(this.#world.random(`${process.name} etcd`));
    const backend = new EtcdBackend({ client }, process, values);
    this.#opened.set(process, { backend, client });
    return backend;
  }

  killed({ name }: LibraryProcess): void {
    this.#world.network.crash(name);
  }

  async close(process: LibraryProcess): Promise<void> {
    const opened = this.#opened.get(process);
    await opened?.backend.close();
    opened?.client.close();
  }

  disturb({ kind, amount }: LibraryFault, { name }: LibraryProcess): () => void {
    const { network, machines } = this.#world;
    if (kind === 'loss') {
      network.breakStreams(name, 'clients');
      return () => network.breakStreams(name, 'clients');
    }
    const ways = machines.flatMap((machine) => {
      const there = [name, machine.name] as const;
      const back = [machine.name, name] as const;
      if (amount < 0.3) return [there];
      return amount < 0.6 ? [back] : [there, back];
    });
    for (const way of ways) network.cut(...way);
    return () => {
      for (const way of ways) network.heal(...way);
    };
  }

  heal(): void {
    this.#serverFaults.heal();
  }

  has(entry: EntryKey): boolean {
    return this.#keysIn({ key: keys.entry(entry), rangeEnd: '' }).length > 0;
  }

  ids(): readonly string[] {
    return this.#keysIn(everything).map((key) => key.slice(key.lastIndexOf('/') + 1));
  }

  /** In the durable log. */
  #keysIn(range: { readonly key: string; readonly rangeEnd: string }): readonly string[] {
    const result = this.#world.leases.state.range({ ...plain, ...range });
    return 'kvs' in result ? result.kvs.map(({ key }) => key) : [];
  }
}
