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
import type { Signal } from '../../packages/client/src/time/signal.ts';
import type { HoldChecker } from './hold-checker.ts';
import type { LeftoverChecker } from './leftover-checker.ts';
import type { LibraryProcess } from './library-process.ts';
import type { ResendChecker } from './resend-checker.ts';

export interface ObservedBackendOptions {
  readonly backend: LeaseBackend;
  readonly process: LibraryProcess;
  readonly nowMs: () => number;
  readonly holds: HoldChecker;
  readonly leftovers: LeftoverChecker;
  readonly resends: ResendChecker;
}

/** Tells the checkers what the library sends to its backend, and when in true time. Changes nothing. */
export class ObservedBackend implements LeaseBackend {
  readonly kind: string;
  readonly limits: BackendLimits;
  readonly pollIntervalMs: number;
  readonly #options: ObservedBackendOptions;
  readonly #backend: LeaseBackend;

  constructor(options: ObservedBackendOptions) {
    this.#options = options;
    this.#backend = options.backend;
    this.kind = options.backend.kind;
    this.limits = options.backend.limits;
    this.pollIntervalMs = options.backend.pollIntervalMs;
  }

  async enter(claim: Claim, options: EnterOptions): Promise<Entered> {
    const { nowMs, holds, leftovers, resends, process } = this.#options;
    const sentMs = nowMs();
    resends.sent(`enter ${claim.id}`, process.name);
    leftovers.claimed(claim, process);
    try {
      const entered = await this.#backend.enter(claim, options);
      if (entered.sequence !== undefined) holds.entered(claim.id, sentMs);
      return entered;
    } finally {
      resends.ambiguous(`enter ${claim.id}`);
    }
  }

  list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return this.#backend.list(name, signal);
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const { nowMs, holds, process } = this.#options;
    const sentMs = nowMs();
    const answer = this.#backend.renew(renewals, signal);
    process.afterRenewalSent?.();
    process.afterRenewalSent = undefined;
    const flags = await answer;
    // An answer after the attempt was given up is none.
    if (signal.aborted) return flags;
    for (const [at, { id }] of renewals.entries()) if (flags[at] === true) holds.renewed(id, sentMs);
    return flags;
  }

  leave(entry: EntryKey, signal: Signal): Promise<boolean> {
    return this.#backend.leave(entry, signal);
  }

  update(entry: EntryKey, data: string, signal: Signal): Promise<boolean> {
    return this.#backend.update(entry, data, signal);
  }

  watch(name: string, onChange: () => void): QueueWatch {
    return this.#backend.watch(name, onChange);
  }

  close(): Promise<void> {
    return this.#backend.close();
  }
}
