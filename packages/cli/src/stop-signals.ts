/** The signals by which a terminal or a supervisor stops a command. */
export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const satisfies readonly NodeJS.Signals[];

/** Handles these signals until it is disposed of; by default Node would end the process. */
export function takeSignals(
  signals: readonly NodeJS.Signals[],
  onSignal: (signal: NodeJS.Signals) => void,
): Disposable {
  for (const signal of signals) process.on(signal, onSignal);
  return {
    [Symbol.dispose]: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
