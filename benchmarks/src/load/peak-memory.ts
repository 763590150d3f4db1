import type { MeasuredServer } from '../servers/measured-server.ts';

const sampleMs = 20;

/** Looks at a server's memory until it is told to stop; gives the most that it held beyond what it held at first. */
export class PeakMemory {
  readonly #server: MeasuredServer;
  readonly #firstBytes: number;
  readonly #timer: NodeJS.Timeout;
  #peakBytes: number;

  constructor(server: MeasuredServer) {
    this.#server = server;
    this.#firstBytes = server.rssBytes();
    this.#peakBytes = this.#firstBytes;
    this.#timer = setInterval(() => this.#look(), sampleMs);
  }

  stop(): number {
    clearInterval(this.#timer);
    this.#look();
    return this.#peakBytes - this.#firstBytes;
  }

  #look(): void {
    this.#peakBytes = Math.max(this.#peakBytes, this.#server.rssBytes());
  }
}
