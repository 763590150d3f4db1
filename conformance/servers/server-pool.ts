import type { RunningServer } from './server-options.ts';

/** Identical servers, each lent to one user at a time, which alone changes its revision meanwhile. */
export class ServerPool {
  readonly #servers: readonly RunningServer[];
  readonly #idle: RunningServer[];
  readonly #waiting: ((server: RunningServer) => void)[] = [];

  private constructor(servers: readonly RunningServer[]) {
    this.#servers = servers;
    this.#idle = [...servers];
  }

  static async start(count: number, start: () => Promise<RunningServer>): Promise<ServerPool> {
    const outcomes = await Promise.allSettled(Array.from({ length: count }, start));
    const servers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed === undefined) return new ServerPool(servers);
    await Promise.all(servers.map((server) => server.stop()));
    throw failed.reason;
  }

  /** Waits for a free server, uses it, and returns it. */
  async lend<T>(use: (server: RunningServer) => Promise<T>): Promise<T> {
    const server = this.#idle.shift() ?? (await new Promise<RunningServer>((resolve) => this.#waiting.push(resolve)));
    try {
      return await use(server);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.push(server);
      else next(server);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}
