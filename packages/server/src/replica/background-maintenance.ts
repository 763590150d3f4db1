import type { Command, CommandResponse, StateMachine } from '@tenure/core';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import type { Clock } from '../time/clock.ts';
import { AutoCompactor } from './auto-compactor.ts';
import { SpaceAlarmMonitor } from './space-alarm-monitor.ts';

export interface BackgroundMaintenanceOptions {
  readonly clock: Clock;
  /** Undefined: the operator does all maintenance. */
  readonly policy: AutoCompaction | undefined;
  readonly quotaBytes: number;
  readonly memberId: bigint;
  readonly state: () => StateMachine;
  /** See AutoCompactorOptions. */
  readonly oldestWatched: () => number | undefined;
  /** See SpaceAlarmMonitorOptions. */
  readonly isRaisedHere: () => boolean;
  readonly speaksFor: (memberId: bigint) => boolean;
  /** Of several servers, only the leader compacts. */
  readonly leads: () => boolean;
  readonly propose: (command: Command) => Promise<CommandResponse>;
  readonly onCompacted: (revision: number, outcome: string) => void;
}

/** Keeps a server from filling up: compacts the history and clears the space alarm. */
export class BackgroundMaintenance {
  readonly #compactor: AutoCompactor | undefined;
  readonly #space: SpaceAlarmMonitor | undefined;

  constructor(options: BackgroundMaintenanceOptions) {
    const { policy, state, propose, leads, onCompacted } = options;
    if (policy === undefined) return;
    const compact = async (revision: number): Promise<void> => {
      // A follower skips the compaction. The next one is due later, and this server may lead by then.
      if (!leads()) return;
      const { kind } = await propose({ kind: 'compact', revision });
      onCompacted(revision, kind);
    };
    this.#compactor = new AutoCompactor({ ...options, policy, compact });
    this.#space = new SpaceAlarmMonitor({ ...options, state, propose });
  }

  stop(): void {
    this.#compactor?.stop();
    this.#space?.stop();
  }
}
