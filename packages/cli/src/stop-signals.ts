/** What a terminal or a supervisor sends to have a command end. */
export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const satisfies readonly NodeJS.Signals[];

/** Takes these signals over from Node, which would end the process, until it is disposed of. */
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
