import { setTimeout as delay } from 'node:timers/promises';
import type { TestedServer } from './tested-server.ts';

/** How long each of them lasts; the server needs the hook `spin` with as many SPIN_MS. */
export const stallMs = 3_000;
/** Enough for the timers that are due, and for little else. */
const hardlyAPauseMs = 20;

/** The ways in which a server can stand still for three seconds while its clients go on. */
export const stalls = {
  blocked: async (server: TestedServer): Promise<void> => {
    server.process.signal('SIGUSR2');
    await delay(stallMs);
  },
  'blocked twice with hardly a pause': async (server: TestedServer): Promise<void> => {
    server.process.signal('SIGUSR2');
    await delay(stallMs + hardlyAPauseMs);
    server.process.signal('SIGUSR2');
    await delay(stallMs);
  },
  suspended: async (server: TestedServer): Promise<void> => {
    server.process.signal('SIGSTOP');
    await delay(stallMs);
    server.process.signal('SIGCONT');
  },
} as const;
