import type { Claim } from '../../packages/client/src/backend/lease-backend.ts';
import { clockErrorMax } from '../leases/expiry-bound.ts';
import type { Violations } from '../world/violations.ts';
import type { LibraryProcess } from './library-process.ts';

/** The use of one queue by one process. */
interface QueueUse {
  readonly process: LibraryProcess;
  /** Acquisitions in progress and holds. */
  inUse: number;
  /** When the last one of them ended, in true time. */
  unusedSinceMs: number;
}

interface LeftoverCheckerOptions {
  readonly nowMs: () => number;
  readonly violations: Violations;
  /** How long a message may take, and a store to notice an expiry. */
  readonly slackMs: number;
}

/** Judges the second half of K3: an acquisition that was cancelled, or a hold that ended, leaves no entry for long. */
export class LeftoverChecker {
  readonly #options: LeftoverCheckerOptions;
  readonly #uses = new Map<LibraryProcess, Map<string, QueueUse>>();
  readonly #claims = new Map<string, { readonly use: QueueUse; readonly ttlMs: number }>();

  constructor(options: LeftoverCheckerOptions) {
    this.#options = options;
  }

  claimed({ id, name, ttlMs }: Pick<Claim, 'id' | 'name' | 'ttlMs'>, process: LibraryProcess): void {
    this.#claims.set(id, { use: this.#use(process, name), ttlMs });
  }

  /** The process begins an acquisition in the queue. */
  began(process: LibraryProcess, queue: string): void {
    this.#use(process, queue).inUse += 1;
  }

  /** The acquisition has failed, or its hold has ended. */
  ended(process: LibraryProcess, queue: string): void {
    const use = this.#use(process, queue);
    use.inUse -= 1;
    use.unusedSinceMs = this.#options.nowMs();
  }

  killed(process: LibraryProcess): void {
    for (const use of this.#uses.get(process)?.values() ?? []) {
      use.inUse = 0;
      use.unusedSinceMs = this.#options.nowMs();
    }
  }

  /** `ids` are those of all entries in the store. */
  check(ids: Iterable<string>): void {
    const nowMs = this.#options.nowMs();
    for (const id of ids) {
      const claim = this.#claims.get(id);
      if (claim === undefined || claim.use.inUse > 0) continue;
      const leftMs = nowMs - claim.use.unusedSinceMs;
      if (leftMs <= claim.ttlMs / (1 - clockErrorMax) + this.#options.slackMs) continue;
      this.#claims.delete(id);
      const words = `an entry of ${claim.use.process.name} is there ${Math.round(leftMs)} ms after its last use`;
      this.#options.violations.report('K3', words);
    }
  }

  #use(process: LibraryProcess, queue: string): QueueUse {
    const ofProcess = this.#uses.get(process) ?? new Map<string, QueueUse>();
    this.#uses.set(process, ofProcess);
    const use = ofProcess.get(queue) ?? { process, inUse: 0, unusedSinceMs: this.#options.nowMs() };
    ofProcess.set(queue, use);
    return use;
  }
}
