import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { methods, rangeRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

export interface LargeReads {
  /** host:port. */
  readonly address: string;
  readonly key: string;
  readonly rangeEnd: string;
  readonly clients: number;
  /** The minimum size of each reply, so that an error does not count as a read. */
  readonly minBytes: number;
}

/**
 * Clients that read the same range repeatedly, each on its own connection and one read at a time. They run on a
 * separate thread: the data that they receive must not delay the clients whose latency is measured.
 */
export class LargeReaders {
  readonly #worker: Worker;
  readonly #ended: Promise<number>;

  constructor(reads: LargeReads) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: reads });
    this.#ended = new Promise((resolve, reject) => {
      this.#worker.once('message', resolve);
      this.#worker.once('error', reject);
    });
    this.#ended.catch(() => {});
  }

  /** Ends the reads, and returns their number. */
  async stop(): Promise<number> {
    this.#worker.postMessage('stop');
    const reads = await this.#ended;
    await this.#worker.terminate();
    return reads;
  }
}

async function readUntilStopped({ address, key, rangeEnd, clients, minBytes }: LargeReads): Promise<number> {
  const request = rangeRequest(key, { rangeEnd });
  let isStopped = false;
  let reads = 0;
  parentPort?.once('message', () => (isStopped = true));
  const read = async (): Promise<void> => {
    const connection = await GrpcConnection.open(address);
    while (!isStopped) {
      const bytes = await connection.discarded(methods.range, request);
      if (bytes < minBytes) throw new Error(`a range of ${bytes} bytes came, of ${minBytes} or more`);
      reads += 1;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: clients }, read));
  return reads;
}

if (!isMainThread) parentPort?.postMessage(await readUntilStopped(workerData as LargeReads));
