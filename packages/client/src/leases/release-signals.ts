import { ClosedError } from '../errors/closed-error.ts';
import { UsageError } from '../errors/usage-error.ts';

/** What tells a process to end, with the number that stands in its exit code. */
const signalNumbers: Readonly<Record<ReleaseSignal, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
const exitCodeBase = 128;

export type ReleaseSignal = 'SIGHUP' | 'SIGINT' | 'SIGTERM';

/** Closes a manager. Nobody is told that it is closed before what `onReleased` gives has resolved. */
export type CloseBySignal = (onReleased: () => Promise<void>) => Promise<void>;

/** Throws a UsageError for what is no such signal. */
export function checkReleaseSignals(signals: readonly ReleaseSignal[]): void {
  const known = Object.keys(signalNumbers);
  if (Array.isArray(signals) && signals.every((signal) => known.includes(signal))) return;
  throw new UsageError(`releaseOn must be a list of ${known.join(', ')}`);
}

/**
 * Closes at the first of the signals. When all has been released, by every manager of the process, and before anybody
 * is told that they are closed, the process ends by that signal, unless the program listens for it as well: then it is
 * for the program to end. A second signal ends it at once. The returned function takes it back.
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
    ending ??= new Ending(signal);
    const leave = ending.join();
    void close(() => {
      stop();
      return leave();
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

/** Of all managers that were told to close and have not released yet: a signal tells them all in one turn. */
let ending: Ending | undefined;

/**
 * The end of the process, from a signal until all managers have released. An error that nobody catches meanwhile does
 * not end it: mostly it is the work saying that it was told to stop. A program that listens for such errors goes on
 * deciding by itself.
 */
class Ending {
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

  /** The function says that one manager has released, and resolves when all have and the process is to go on. */
  join(): () => Promise<void> {
    this.#managers++;
    return () => {
      if (--this.#managers === 0) this.#end();
      return this.#released;
    };
  }

  #end(): void {
    const { process } = globalThis;
    ending = undefined;
    process.off('uncaughtException', this.#keepFirst);
    const isForProgram = process.listenerCount(this.#signal) > 0;
    if (!this.#throwsFirst({ isOursThrown: isForProgram })) endBy(this.#signal);
    this.#resolve();
  }

  /** Where nobody catches it, if it is more than the news that all is closed. */
  #throwsFirst(options: { readonly isOursThrown: boolean }): boolean {
    const found = this.#first;
    // Who listens for them has been told already.
    if (found === undefined || globalThis.process.listenerCount('uncaughtException') > 0) return false;
    if (isOfClosing(found.error) && !options.isOursThrown) return false;
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
