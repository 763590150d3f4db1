import type { MeasuredServer } from '../servers/measured-server.ts';

const sampleMs = 20;

/** Samples a server's memory until it is stopped; returns the peak above the first sample. */
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
