import type { Schedule } from '@tenure/test-support';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from '../../packages/client/src/backend/lease-backend.ts';
import { BackendError } from '../../packages/client/src/errors/backend-error.ts';
import { onAbort } from '../../packages/client/src/time/on-abort.ts';
import type { Signal } from '../../packages/client/src/time/signal.ts';
import type { Coverage } from '../world/coverage.ts';
import type { LibraryProcess } from './library-process.ts';
import type { StoreNetwork } from './store-network.ts';

interface RemoteBackendOptions {
  readonly store: LeaseBackend;
  readonly process: LibraryProcess;
  readonly schedule: Schedule;
  readonly network: StoreNetwork;
  readonly coverage: Coverage;
}

const never = new AbortController().signal;

/** A store as one process sees it: each call is a message there and a message back, and either may be lost. */
export class RemoteBackend implements LeaseBackend {
  readonly kind = 'remote';
  readonly limits: BackendLimits;
  /** Hints are lost here. */
  readonly pollIntervalMs = 2_000;
  readonly #options: RemoteBackendOptions;

  constructor(options: RemoteBackendOptions) {
    this.#options = options;
    this.limits = options.store.limits;
  }

  enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    return this.#call(signal, 'enter', (store) => store.enter(claim, { onlyIfHolds, signal: never }));
  }

  list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return this.#call(signal, 'list', (store) => store.list(name, never));
  }

  renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    return this.#call(signal, 'renew', (store) => store.renew(renewals, never));
  }

  leave(entry: EntryKey, signal: Signal): Promise<boolean> {
    return this.#call(signal, 'leave', (store) => store.leave(entry, never));
  }

  update(entry: EntryKey, data: string, signal: Signal): Promise<boolean> {
    return this.#call(signal, 'update', (store) => store.update(entry, data, never));
  }

  watch(name: string, onChange: () => void): QueueWatch {
    const { store, process, network } = this.#options;
    let isOpen = true;
    process.openWatches += 1;
    const watch = store.watch(name, () => {
      if (network.isDown || network.loses()) return;
      process.node.deliver(network.delayMs(), () => {
        if (isOpen) onChange();
      });
    });
    return {
      close: () => {
        if (isOpen) process.openWatches -= 1;
        isOpen = false;
        watch.close();
      },
    };
  }

  async close(): Promise<void> {}

  #call<T>(signal: Signal, what: string, run: (store: LeaseBackend) => Promise<T>): Promise<T> {
    const { store, process, schedule, network, coverage } = this.#options;
    process.openCalls += 1;
    return new Promise<T>((resolve, reject) => {
      let isOpen = true;
      const settle = (settled: () => void): void => {
        if (!isOpen) return;
        isOpen = false;
        process.openCalls -= 1;
        offAbort();
        settled();
      };
      const offAbort = onAbort(signal, () => settle(() => reject(signal.reason)));
      const lost = (when: string): void => {
        coverage.count(`library: ${what} lost ${when}`);
        const broken = new BackendError(this.kind, 'unavailable', 'the connection broke');
        if (network.isNoticed()) process.node.deliver(network.delayMs(), () => settle(() => reject(broken)));
      };
      const reply = (settled: () => void): void => {
        if (network.isDown || network.loses()) return lost('after it was done');
        return process.node.deliver(network.delayMs(), () => {
          if (!isOpen) coverage.count(`library: late answer to ${what}`);
          settle(settled);
        });
      };
      if (signal.aborted) return;
      if (network.isDown || network.loses()) return lost('before it was done');
      schedule.in(network.delayMs(), () => {
        run(store).then(
          (value) => reply(() => resolve(value)),
          (error: unknown) => reply(() => reject(error)),
        );
      });
    });
  }
}
