import type { Scenario } from '../scenario.ts';

/** The server is new, so that its own start is the measured one. */
export const emptyStart: Scenario = {
  name: 'empty-start',
  work: 'Start of an empty server: from its start until it answers a read',
  unit: 's',
  rounds: 5,
  target: { kind: 'valueAtMost', bound: 0.4 },
  async measure(server) {
    return Promise.resolve({ value: server.startMs / 1000, details: { 'memory, MiB': server.rssBytes() / 1024 ** 2 } });
  },
};
