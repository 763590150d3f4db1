/**
 * Calls back when the process is told to end, and lets it end when that is done, unless the program listens for the
 * signal as well: then it is for the program to end. The returned function takes it back.
 */
export function onSigterm(callback: () => Promise<void>): () => void {
  const { process } = globalThis;
  const listener = (): void => {
    const end = (): void => {
      process.off('SIGTERM', listener);
      // Without a listener the signal has its usual effect, and the exit status says so.
      if (process.listenerCount('SIGTERM') === 0) process.kill(process.pid, 'SIGTERM');
    };
    callback().then(end, end);
  };
  process.on('SIGTERM', listener);
  return () => void process.off('SIGTERM', listener);
}
