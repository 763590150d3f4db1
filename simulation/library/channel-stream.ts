import { GrpcCallError, GrpcCode } from '@tenure/grpc-client';
import type { RpcStream } from '../../packages/client/src/etcd/connection/etcd-channel.ts';
import type { ClientConnection, ClientStream } from '../world/client-connection.ts';

type Event = 'data' | 'error' | 'end' | 'close';

/** A stream of the library's etcd client. Like a stream of Node, it tells its listeners in a later turn. */
export class ChannelStream implements RpcStream {
  readonly #stream: ClientStream;
  readonly #onOver: () => void;
  readonly #listeners = new Map<Event, ((value: never) => void)[]>();
  /** Messages for a reader that iterates. */
  readonly #unread: Buffer[] = [];
  #wake = (): void => {};
  #isOver = false;
  #failure: GrpcCallError | undefined;

  constructor(connection: ClientConnection, path: string, onOver: () => void) {
    this.#onOver = onOver;
    this.#stream = connection.open(path, {
      onMessage: (message) => this.#received(Buffer.from(message)),
      onEnd: ({ code, message }) => this.#over(code, message),
    });
  }

  write(message: Buffer): void {
    if (!this.#isOver) this.#stream.write(message);
  }

  end(): void {
    this.#stream.halfClose();
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#stream.cancel();
    this.#over(GrpcCode.cancelled, 'the call was cancelled');
  }

  on(event: Event, listener: (value: never) => void): void {
    const listeners = this.#listeners.get(event) ?? [];
    this.#listeners.set(event, [...listeners, listener]);
  }

  once(event: 'close', listener: () => void): void {
    this.on(event, listener);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        for (let next = this.#unread.shift(); next !== undefined; next = this.#unread.shift()) yield next;
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#isOver) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.cancel();
    }
  }

  #received(message: Buffer): void {
    if (this.#isOver) return;
    if (this.#listeners.has('data')) return this.#tell('data', message);
    this.#unread.push(message);
    return this.#wake();
  }

  #over(code: number, message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
    if (code !== GrpcCode.ok) this.#failure = new GrpcCallError(code, message, { wasSent: true });
    this.#wake();
    queueMicrotask(() => {
      if (this.#failure === undefined) this.#tell('end');
      else this.#tell('error', this.#failure);
      this.#tell('close');
    });
  }

  #tell(event: Event, value?: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value as never);
  }
}
