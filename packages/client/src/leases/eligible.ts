import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';

/** The function is polled, so a change is noticed after this time at the latest. */
const checkIntervalMs = 1_000;

interface EligibilityOptions {
  readonly clock: Clock;
  /** A function that throws counts as false. */
  readonly eligible: () => boolean;
  /** Ends the polling. */
  readonly signal: Signal;
}

/** Resolves with true when the function returns true, with false when the time is up or the signal has aborted. */
export async function untilEligible(options: EligibilityOptions & { readonly limitMs: number }): Promise<boolean> {
  const { clock, signal } = options;
  for (let leftMs = options.limitMs; !signal.aborted;) {
    if (isEligible(options.eligible)) return true;
    if (leftMs <= 0) return false;
    const pauseMs = Math.min(checkIntervalMs, leftMs);
    await sleep(clock, pauseMs, signal);
    leftMs -= pauseMs;
  }
  return false;
}

/** The returned signal aborts when the function returns false. `end` stops the polling. */
export function whileEligible(options: EligibilityOptions): EligibleWhile {
  const controller = new AbortController();
  const ended = new AbortController();
  const off = onAbort(options.signal, () => ended.abort());
  const poll = async (): Promise<void> => {
    while (!ended.signal.aborted && isEligible(options.eligible)) {
      await sleep(options.clock, checkIntervalMs, ended.signal);
    }
    if (!ended.signal.aborted) controller.abort(new Error('this process is not eligible at the moment'));
  };
  void poll();
  return {
    signal: controller.signal,
    end: () => {
      off();
      ended.abort();
    },
  };
}

interface EligibleWhile {
  readonly signal: Signal;
  end(): void;
}

/** What the function returns now. One that throws counts as false. */
export function isEligible(eligible: () => boolean): boolean {
  try {
    return eligible();
  } catch {
    return false;
  }
}
