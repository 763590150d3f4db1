import { ClosedError } from '../errors/closed-error.ts';
import { UsageError } from '../errors/usage-error.ts';

/** The signals that end a process, with the numbers that its exit code is made of. */
const signalNumbers: Readonly<Record<ReleaseSignal, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
const exitCodeBase = 128;

export type ReleaseSignal = 'SIGHUP' | 'SIGINT' | 'SIGTERM';

/** Closes a manager. No waiting caller gets a ClosedError before the promise of `onReleased` has resolved. */
export type CloseBySignal = (onReleased: () => Promise<void>) => Promise<void>;

/** Throws a UsageError for any other signal. */
export function checkReleaseSignals(signals: readonly ReleaseSignal[]): void {
  const known = Object.keys(signalNumbers);
  if (Array.isArray(signals) && signals.every((signal) => known.includes(signal))) return;
  throw new UsageError(`releaseOn must be a list of ${known.join(', ')}`);
}

/**
 * Closes at the first of the signals. When every manager of the process has released its leases, and before waiting
 * callers get a ClosedError, the process ends by that signal. If the program listens for the signal too, the program
 * has to end the process. A second signal ends it at once. The returned function removes the listeners.
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
    shutdown ??= new ProcessShutdown(signal);
    const leave = shutdown.join();
    void close(() => {
      stop();
      return leave();
    });
  };
  for (const signal of signals) process.on(signal, listener);
  return stop;
}

/** Without a listener the signal has its default effect, which the exit status shows. */
function endBy(signal: ReleaseSignal): void {
  const { process } = globalThis;
  if (process.listenerCount(signal) > 0) return;
  process.kill(process.pid, signal);
  // The first process of a container (PID 1) survives a signal without a listener.
  process.exit(exitCodeBase + signalNumbers[signal]);
}

/** Shared by all managers that are closing: one signal reaches them all in the same turn of the event loop. */
let shutdown: ProcessShutdown | undefined;

/**
 * The shutdown of the process, from a signal until all managers have released their leases. An uncaught error does not
 * end the process meanwhile, because usually it is work that reports its abort. A program with its own listener for
 * uncaught errors decides by itself.
 */
class ProcessShutdown {
  readonly #signal: ReleaseSignal;
  readonly #released: Promise<void>;
  #resolve: () => void = () => {};
  #managers = 0;
  #first: { readonly error: unknown } | undefined;

  constructor(signal: ReleaseSignal) {
    this.#signal = signal;
    this.#released = new Promise((resolve) => (this.#resolve = resolve));
    globalThis.process.on('uncaughtException', this.#keepFirst);
  }

  /** The returned function reports that one manager has released its leases. It resolves when all have. */
  join(): () => Promise<void> {
    this.#managers++;
    return () => {
      if (--this.#managers === 0) this.#end();
      return this.#released;
    };
  }

  #end(): void {
    const { process } = globalThis;
    shutdown = undefined;
    process.off('uncaughtException', this.#keepFirst);
    const programEndsIt = process.listenerCount(this.#signal) > 0;
    if (!this.#rethrowsFirst({ includeClosed: programEndsIt })) endBy(this.#signal);
    this.#resolve();
  }

  /** Throws the first uncaught error again. One that only reports the closing is thrown if the program goes on. */
  #rethrowsFirst(options: { readonly includeClosed: boolean }): boolean {
    const found = this.#first;
    // The program's own listener has received it already.
    if (found === undefined || globalThis.process.listenerCount('uncaughtException') > 0) return false;
    if (isOfClosing(found.error) && !options.includeClosed) return false;
    setImmediate(() => {
      throw found.error;
    });
    return true;
  }

  readonly #keepFirst = (error: unknown): void => void (this.#first ??= { error });
}

/** Node's own functions reject with an AbortError, whose cause is the reason of the signal. */
function isOfClosing(error: unknown): boolean {
  return error instanceof ClosedError || (error instanceof Error && error.cause instanceof ClosedError);
}
