import type { LogEngine, Position } from '../../engines/log-engine.ts';

/** A gate that is open unless the test holds it. */
class Gate {
  #opened: Promise<void> = Promise.resolve();
  #arrived: Promise<void> = Promise.resolve();
  #arrive = (): void => {};

  pass(): Promise<void> {
    this.#arrive();
    return this.#opened;
  }

  /** Resolves when a call has reached the gate since it was held. */
  arrival(): Promise<void> {
    return this.#arrived;
  }

  /** From here on calls wait at the gate until the returned function is called. */
  hold(): () => void {
    let open!: () => void;
    this.#arrived = new Promise((resolve) => (this.#arrive = resolve));
    this.#opened = new Promise((resolve) => (open = resolve));
    return open;
  }
}

/** One server's connection to a shared log. The test can hold up each direction. */
export class WiredEngine implements LogEngine {
  readonly name = 'wired';
  readonly isShared = true;
  /** Before an append reaches the log. */
  readonly requests = new Gate();
  /** Before this server learns the outcome of an append. */
  readonly replies = new Gate();
  /** Before this server reads the entries after its position in the log. */
  readonly reading = new Gate();
  readonly #engine: LogEngine;

  constructor(engine: LogEngine) {
    this.#engine = engine;
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    await this.requests.pass();
    try {
      return await this.#engine.append(batch, after);
    } finally {
      await this.replies.pass();
    }
  }

  async *follow(from: Position, signal: AbortSignal): ReturnType<LogEngine['follow']> {
    for await (const entries of this.#engine.follow(from, signal)) {
      await this.reading.pass();
      yield entries;
    }
  }

  tail(): Promise<Position> {
    return this.#engine.tail();
  }

  saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#engine.saveSnapshot(position, chunks);
  }

  loadSnapshot(): ReturnType<LogEngine['loadSnapshot']> {
    return this.#engine.loadSnapshot();
  }

  trim(index: number): Promise<void> {
    return this.#engine.trim(index);
  }

  sizeBytes(): number {
    return this.#engine.sizeBytes();
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}
