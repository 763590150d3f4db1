import { ClosedError } from '../errors/closed-error.ts';
import { UsageError } from '../errors/usage-error.ts';

/** What tells a process to end, with the number that stands in its exit code. */
const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const exitCodeBase = 128;

export type ReleaseSignal = keyof typeof signalNumbers;

/** What closing a manager needs of whoever asked for it by a signal. */
export type CloseBySignal = (onReleased: () => void) => Promise<void>;

/** Throws a UsageError for what is no such signal. */
export function checkReleaseSignals(signals: readonly ReleaseSignal[]): void {
  const known = Object.keys(signalNumbers);
  if (Array.isArray(signals) && signals.every((signal) => known.includes(signal))) return;
  throw new UsageError(`releaseOn must be a list of ${known.join(', ')}`);
}

/**
 * Closes at the first of the signals. When all has been released, and before anybody is told that the manager is
 * closed, the process ends by that signal, unless the program listens for it as well: then it is for the program to
 * end. A second signal ends it at once. The returned function takes it back.
 */
export function closeOnSignals(signals: readonly ReleaseSignal[], close: CloseBySignal): () => void {
  const { process } = globalThis;
  let isClosing = false;
  const stop = (): void => {
    for (const signal of signals) process.off(signal, listener);
  };
  const listener = (signal: ReleaseSignal): void => {
    if (isClosing) {
      stop();
      endBy(signal);
      return;
    }
    isClosing = true;
    const putOff = new PutOffError();
    void close(() => {
      stop();
      const isForProgram = process.listenerCount(signal) > 0;
      const isThrown = putOff.end({ isOursThrown: isForProgram });
      if (!isThrown) endBy(signal);
    });
  };
  for (const signal of signals) process.on(signal, listener);
  return stop;
}

/** Without a listener the signal has its usual effect, and the exit status says so. */
function endBy(signal: ReleaseSignal): void {
  const { process } = globalThis;
  if (process.listenerCount(signal) > 0) return;
  process.kill(process.pid, signal);
  // The first process of a container outlives a signal that it does not listen for.
  process.exit(exitCodeBase + signalNumbers[signal]);
}

/** Of all managers that are closing. */
let puttingOff = 0;
let firstError: { readonly error: unknown } | undefined;
const keepFirst = (error: unknown): void => void (firstError ??= { error });

/**
 * While leases are being released an error that nobody catches does not end the process: mostly it is the work saying
 * that it was told to stop. A program that listens for such errors goes on deciding by itself.
 */
class PutOffError {
  constructor() {
    if (puttingOff++ === 0) globalThis.process.on('uncaughtException', keepFirst);
  }

  /** Throws what came meanwhile where nobody catches it, if it is more than the news that all is closed. */
  end(options: { readonly isOursThrown: boolean }): boolean {
    const { process } = globalThis;
    if (--puttingOff > 0) return false;
    process.off('uncaughtException', keepFirst);
    const found = firstError;
    firstError = undefined;
    // Who listens for them has been told already.
    if (found === undefined || process.listenerCount('uncaughtException') > 0) return false;
    if (isOfClosing(found.error) && !options.isOursThrown) return false;
    setImmediate(() => {
      throw found.error;
    });
    return true;
  }
}

/** Node's own functions reject with an AbortError, whose cause is the reason of the signal. */
function isOfClosing(error: unknown): boolean {
  return error instanceof ClosedError || (error instanceof Error && error.cause instanceof ClosedError);
}
