import type { Random } from '../random/random.ts';

/** A name for this process that people can read: the host name, the process id and a random part. */
export function defaultHolder(random: Random): string {
  const found = globalThis.process?.getBuiltinModule?.('node:os');
  const words = [found?.hostname(), globalThis.process?.pid, random.uuid().slice(0, 8)];
  return words.filter((word) => word !== undefined).join('-');
}
