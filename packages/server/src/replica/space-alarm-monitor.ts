import type { Alarm, Command, CommandResponse } from '@tenure/core';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

export interface SpaceAlarmMonitorOptions {
  readonly clock: Clock;
  readonly memberId: bigint;
  readonly quotaBytes: number;
  readonly state: () => { readonly sizeForQuotaBytes: number; readonly alarms: readonly Alarm[] };
  /** Whether this server's quota raised the alarm in its name. Asked at each check and after an alarm was cleared. */
  readonly isRaisedHere: () => boolean;
  /** Whether this server clears the alarm of another member: while it leads, for a member that it does not hear. */
  readonly speaksFor: (memberId: bigint) => boolean;
  readonly propose: (command: Command) => Promise<CommandResponse>;
}

/** The interval of checks. */
const lookIntervalMs = 1_000;
/** The alarm is cleared below this share of the quota, so that the next write does not raise it again. */
const endOfAlarmShare = 0.9;

/**
 * Clears a space alarm that a quota raised once there is space again, through the log, as an operator would. An alarm
 * that an operator raised stays until an operator clears it.
 */
export class SpaceAlarmMonitor {
  readonly #options: SpaceAlarmMonitorOptions;
  readonly #cancel: () => void;
  #isAsking = false;

  constructor(options: SpaceAlarmMonitorOptions) {
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
    // Without an outcome, the next check tries again.
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
