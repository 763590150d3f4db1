import type { EntryKey, LeaseBackend } from '../../packages/client/src/backend/lease-backend.ts';
import type { LibraryProcess } from './library-process.ts';
import type { LibraryFault } from './library-scenario.ts';

/** Where the leases of the simulated processes are: one store, reached over a network with faults. */
export interface LibraryStore {
  /** The library's backend in that process. */
  backendOf(process: LibraryProcess): LeaseBackend;
  /** The connections of that process are gone, without a word to it. */
  killed(process: LibraryProcess): void;
  /** After the manager of that process was closed. */
  close(process: LibraryProcess): Promise<void>;
  /** Begins a fault of the network. Returns what ends it. */
  disturb(fault: LibraryFault, process: LibraryProcess): () => void;
  /** Ends all faults of the network and of servers. */
  heal(): void;
  /** In true time, past all networks. */
  has(entry: EntryKey): Promise<boolean> | boolean;
  /** The ids of all entries. */
  ids(): Promise<readonly string[]> | readonly string[];
}
