/** Who this process is, in words for people: the machine, the process, and something that nothing else has. */
export function defaultHolder(): string {
  const found = globalThis.process?.getBuiltinModule?.('node:os');
  const words = [found?.hostname(), globalThis.process?.pid, crypto.randomUUID().slice(0, 8)];
  return words.filter((word) => word !== undefined).join('-');
}
