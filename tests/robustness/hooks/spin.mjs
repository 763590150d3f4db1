// Loaded into a server under test: SIGUSR2 blocks its event loop, like a long computation. The signal is handled in the
// poll phase, so the timers that fell due meanwhile run before sockets are read again.
const spinMs = Number(process.env.SPIN_MS);

process.on('SIGUSR2', () => {
  const untilMs = performance.now() + spinMs;
  while (performance.now() < untilMs);
});
