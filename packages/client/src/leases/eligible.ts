import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';

/** How soon a change is seen: the function is asked, since it can't tell by itself. */
const checkIntervalMs = 1_000;

interface EligibilityOptions {
  readonly clock: Clock;
  /** What it throws means no. */
  readonly eligible: () => boolean;
  /** Ends the asking. */
  readonly signal: Signal;
}

/** Resolves with true when the function says yes, with false when the time is up or the signal has aborted. */
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

/** Its signal aborts when the function says no. `end` stops asking it. */
export function whileEligible(options: EligibilityOptions): EligibleWhile {
  const controller = new AbortController();
  const ended = new AbortController();
  const off = onAbort(options.signal, () => ended.abort());
  const ask = async (): Promise<void> => {
    while (!ended.signal.aborted && isEligible(options.eligible)) {
      await sleep(options.clock, checkIntervalMs, ended.signal);
    }
    if (!ended.signal.aborted) controller.abort(new Error('this process is not eligible at the moment'));
  };
  void ask();
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

/** Whether the function says yes, now. One that throws says no. */
export function isEligible(eligible: () => boolean): boolean {
  try {
    return eligible();
  } catch {
    return false;
  }
}
