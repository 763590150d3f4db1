import { BackendError } from '../errors/backend-error.ts';
import { TenureError } from '../errors/tenure-error.ts';
import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';

export interface TimeLimitOptions {
  readonly clock: Clock;
  /** The kind of backend, for the error. */
  readonly backend: string;
  readonly limitMs: number;
  /** Its abort ends the attempt too. */
  readonly signal?: Signal | undefined;
}

/**
 * One call to a backend with a time limit. It rejects with `unavailable` at its limit and with the signal's reason when
 * that aborts, even if the backend never settles; a late answer is ignored. An error that is not a TenureError becomes
 * `unavailable` too, because the effect of the call is unknown.
 */
export function withTimeLimit<T>(options: TimeLimitOptions, call: (signal: Signal) => Promise<T>): Promise<T> {
  const { clock, backend, limitMs, signal } = options;
  return new Promise<T>((resolve, reject) => {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const end = (settle: () => void): void => {
      timer.cancel();
      offAbort?.();
      settle();
    };
    const giveUp = (reason: unknown): void => {
      end(() => reject(reason));
      controller.abort(reason);
    };
    const timer = clock.setTimer(limitMs, () => {
      giveUp(new BackendError(backend, 'unavailable', `no answer within ${Math.round(limitMs)} ms`));
    });
    const offAbort = signal === undefined ? undefined : onAbort(signal, () => giveUp(signal.reason));
    run(call, controller.signal).then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(asOwnError(backend, error, controller.signal))),
    );
  });
}

/** Rejects even if the function throws before it returns a promise. */
async function run<T>(call: (signal: Signal) => Promise<T>, signal: Signal): Promise<T> {
  return await call(signal);
}

function asOwnError(backend: string, error: unknown, signal: Signal): unknown {
  if (error instanceof TenureError || (signal.aborted && error === signal.reason)) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new BackendError(backend, 'unavailable', message, { cause: error });
}
