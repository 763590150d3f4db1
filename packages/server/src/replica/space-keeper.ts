import type { Alarm, Command, CommandResponse } from '@tenure/core';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

export interface SpaceKeeperOptions {
  readonly clock: Clock;
  readonly memberId: bigint;
  readonly quotaBytes: number;
  readonly state: () => { readonly sizeForQuotaBytes: number; readonly alarms: readonly Alarm[] };
  /** Whether this server's quota has raised the alarm in its name. Asked at each look, and when one has ended. */
  readonly isRaisedHere: () => boolean;
  /** Whether this server speaks for another one: while it leads, for a member that it does not hear. */
  readonly speaksFor: (memberId: bigint) => boolean;
  readonly propose: (command: Command) => Promise<CommandResponse>;
}

/** How often it is looked. */
const lookIntervalMs = 1_000;
/** The alarm ends below this share of the quota, so that the next write does not raise it again. */
const endOfAlarmShare = 0.9;

/**
 * Ends the alarm for space that a quota has raised when there is space again, through the log, as an operator would.
 * One that somebody raised by hand stays until it is ended by hand.
 */
export class SpaceKeeper {
  readonly #options: SpaceKeeperOptions;
  readonly #cancel: () => void;
  #isAsking = false;

  constructor(options: SpaceKeeperOptions) {
    this.#options = options;
    this.#cancel = every(options.clock, lookIntervalMs, () => this.#look());
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const { state, quotaBytes, isRaisedHere, propose } = this.#options;
    const { sizeForQuotaBytes, alarms } = state();
    isRaisedHere();
    if (this.#isAsking || alarms.length === 0 || sizeForQuotaBytes > quotaBytes * endOfAlarmShare) return;
    const ended = alarms.find((alarm) => alarm.alarm === 'nospace' && this.#mayEnd(alarm));
    if (ended === undefined) return;
    this.#isAsking = true;
    // Without an outcome it is looked again.
    void propose({ kind: 'alarm', action: 'deactivate', ...ended })
      .catch(() => undefined)
      .finally(() => {
        this.#isAsking = false;
        isRaisedHere();
      });
  }

  #mayEnd({ memberId }: Alarm): boolean {
    const { memberId: own, isRaisedHere, speaksFor } = this.#options;
    return memberId === own ? isRaisedHere() : speaksFor(memberId);
  }
}
