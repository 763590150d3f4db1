import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { encodeLeaseKeepAliveRequest, frameHeadroomBytes } from '@tenure/codec';
import { framed } from '../../conformance/client/http2-call.ts';
import type { TestedServer } from './tested-server.ts';

export interface RenewalDelays {
  /** The time from sending a renewal to its answer, minus the waiting for a processor on both sides. */
  readonly longestMs: number;
  readonly answered: number;
}

/** The pause between the answer to a renewal and the next renewal. */
const pauseMs = 1;

/** Renews one lease continuously, from its own thread, and measures the longest time of an answer. */
export class RenewalProbe {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves when the first renewal was answered. */
  static async start({ address, process }: TestedServer, lease: bigint): Promise<RenewalProbe> {
    const renewal = framed(encodeLeaseKeepAliveRequest(lease).subarray(frameHeadroomBytes));
    const workerData = { address, renewal, pauseMs, serverPid: process.pid };
    const probe = new RenewalProbe(new Worker(new URL('renewal-probe.mjs', import.meta.url), { workerData }));
    await probe.delays();
    return probe;
  }

  /** The delays since the last call. */
  async delays(): Promise<RenewalDelays> {
    this.#worker.postMessage('tell');
    const [delays] = (await once(this.#worker, 'message')) as [RenewalDelays | undefined];
    if (delays === undefined) throw new Error('the stream of renewals ended');
    return delays;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
