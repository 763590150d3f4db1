import { FrameConnection, initialWindowBytes } from './frame-connection.ts';

/**
 * A unary load in which every request differs, which h2load cannot send. A reply counts as successful when its stream
 * ended and had a message (gRPC sends none with an error).
 */
export interface FrameLoadOptions {
  /** host:port, one or several: the connections are distributed over them in turn. */
  readonly address: string | readonly string[];
  readonly path: string;
  readonly requests: number;
  readonly connections: number;
  readonly streamsPerConnection: number;
  /** The framed message of request `index`; used at once, so the same buffer may be returned again. */
  readonly framedRequest: (index: number) => Buffer;
  /** Receives the message of each successful reply, without gRPC's prefix. */
  readonly onReply?: (index: number, message: Buffer) => void;
}

export interface FrameLoadResult {
  readonly seconds: number;
  readonly perSecond: number;
}

const prefixBytes = 5;

export async function runFrameLoad(options: FrameLoadOptions): Promise<FrameLoadResult> {
  let next = 0;
  const takeIndex = (): number | undefined => (next < options.requests ? next++ : undefined);
  const addresses = [options.address].flat();
  const connections = Array.from({ length: options.connections }, (_, at) => addresses[at % addresses.length] ?? '');
  const startedMs = performance.now();
  await Promise.all(connections.map((address) => new LoadConnection(options, takeIndex).run(address)));
  const seconds = (performance.now() - startedMs) / 1000;
  return { seconds, perSecond: options.requests / seconds };
}

class LoadConnection {
  readonly #options: FrameLoadOptions;
  readonly #takeIndex: () => number | undefined;
  readonly #underWay = new Map<number, { readonly index: number; message: Buffer }>();

  constructor(options: FrameLoadOptions, takeIndex: () => number | undefined) {
    this.#options = options;
    this.#takeIndex = takeIndex;
  }

  run(address: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const connection = new FrameConnection(address, this.#options.path, {
        onConnect: () => {
          for (let count = 0; count < this.#options.streamsPerConnection; count += 1) this.#startNext(connection);
          if (this.#underWay.size === 0) connection.close();
        },
        onData: (streamId, data) => {
          const call = this.#underWay.get(streamId);
          if (call !== undefined) call.message = call.message.length === 0 ? data : Buffer.concat([call.message, data]);
        },
        onEnd: (streamId) => this.#onEnd(connection, streamId),
        onChunk: () => {
          if (this.#underWay.size === 0) connection.close();
        },
        onClose: (error) => {
          if (error === undefined) resolve();
          else reject(error);
        },
      });
    });
  }

  #startNext(connection: FrameConnection): void {
    const index = this.#takeIndex();
    if (index === undefined) return;
    const framed = this.#options.framedRequest(index);
    // A server grants more when it has taken half of its window.
    if (framed.length * this.#options.streamsPerConnection > initialWindowBytes / 2) {
      throw new Error('the requests under way do not fit the window that HTTP/2 opens with');
    }
    this.#underWay.set(connection.call(framed), { index, message: Buffer.alloc(0) });
  }

  #onEnd(connection: FrameConnection, streamId: number): void {
    const call = this.#underWay.get(streamId);
    if (call === undefined) throw new Error(`the server ended stream ${streamId}, which was not open`);
    this.#underWay.delete(streamId);
    if (call.message.length < prefixBytes)
      throw new Error(`request ${call.index} of ${this.#options.path} was refused`);
    this.#options.onReply?.(call.index, call.message.subarray(prefixBytes));
    this.#startNext(connection);
  }
}
