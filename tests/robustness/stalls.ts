import { setTimeout as delay } from 'node:timers/promises';
import type { TestedServer } from './tested-server.ts';

/** The length of each block. The server needs the hook `spin` with the same SPIN_MS. */
export const stallMs = 3_000;
/** Long enough for the timers that are due, and for little else. */
const hardlyAPauseMs = 20;

/** The ways in which a server can stall for three seconds while its clients continue. */
export const stalls = {
  blocked: async (server: TestedServer): Promise<void> => {
    server.process.signal('SIGUSR2');
    await delay(stallMs);
  },
  'blocked twice with a short pause': async (server: TestedServer): Promise<void> => {
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
