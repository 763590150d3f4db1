import type { Command, CommandResponse, StateMachine } from '@tenure/core';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import type { Clock } from '../time/clock.ts';
import { AutoCompactor } from './auto-compactor.ts';
import { SpaceKeeper } from './space-keeper.ts';

export interface UpkeepOptions {
  readonly clock: Clock;
  /** Undefined: an operator does all of it. */
  readonly policy: AutoCompaction | undefined;
  readonly quotaBytes: number;
  readonly memberId: bigint;
  readonly state: () => StateMachine;
  /** See AutoCompactorOptions. */
  readonly oldestWatched: () => number | undefined;
  /** See SpaceKeeperOptions. */
  readonly isRaisedHere: () => boolean;
  readonly speaksFor: (memberId: bigint) => boolean;
  /** Of several servers, the one that leads compacts. */
  readonly leads: () => boolean;
  readonly propose: (command: Command) => Promise<CommandResponse>;
  readonly onCompacted: (revision: number, outcome: string) => void;
}

/** What a server does so that it does not fill up by itself: it compacts the history, and ends the alarm for space. */
export class Upkeep {
  readonly #compactor: AutoCompactor | undefined;
  readonly #space: SpaceKeeper | undefined;

  constructor(options: UpkeepOptions) {
    const { policy, state, propose, leads, onCompacted } = options;
    if (policy === undefined) return;
    const compact = async (revision: number): Promise<void> => {
      // What is not compacted here is tried again when the next is due: perhaps this server leads by then.
      if (!leads()) return;
      const { kind } = await propose({ kind: 'compact', revision });
      onCompacted(revision, kind);
    };
    this.#compactor = new AutoCompactor({ ...options, policy, compact });
    this.#space = new SpaceKeeper({ ...options, state, propose });
  }

  stop(): void {
    this.#compactor?.stop();
    this.#space?.stop();
  }
}
