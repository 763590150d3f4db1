import { logStart, nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, LoggedEntry, Position, StoredSnapshot } from '../log-engine.ts';
import { AppendNotifier } from '../append-notifier.ts';

export interface MemoryEngineOptions {
  /** A followed chunk holds no more bytes than this, except that it holds at least one entry. 1 MiB by default. */
  readonly maxFollowBytes?: number;
  /** False by default. */
  readonly isShared?: boolean;
}

/** A log that lives as long as this object: for tests, the simulator, and leases without a disk. */
export function memoryEngine(options: MemoryEngineOptions = {}): LogEngine {
  return new MemoryEngine(options.maxFollowBytes ?? 1024 * 1024, options.isShared ?? false);
}

class MemoryEngine implements LogEngine {
  readonly name = 'memory';
  readonly isShared: boolean;
  readonly #maxFollowBytes: number;
  /** The entries after #base, in order. */
  #entries: LoggedEntry[] = [];
  #base: Position = logStart;
  #tail: Position = logStart;
  #snapshot: { position: Position; chunks: readonly Uint8Array[]; bytes: number } | undefined;
  #savingSnapshot = false;
  #entryBytes = 0;
  #closed = false;
  readonly #notifier = new AppendNotifier();

  constructor(maxFollowBytes: number, isShared: boolean) {
    this.#maxFollowBytes = maxFollowBytes;
    this.isShared = isShared;
  }

  append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    return this.#answer(() => {
      if (after.index !== this.#tail.index || after.hash !== this.#tail.hash) {
        const message = `the log ends at entry ${this.#tail.index}, not at ${after.index} as the append expected`;
        throw new EngineError('conflict', message, { tail: this.#tail });
      }
      for (const bytes of batch) {
        this.#tail = nextPosition(this.#tail, bytes);
        this.#entries.push({ position: this.#tail, bytes: Buffer.from(bytes) });
        this.#entryBytes += bytes.length;
      }
      if (batch.length > 0) this.#notifier.notify();
      return this.#tail;
    });
  }

  async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    this.#checkOpen();
    this.#checkHolds(from);
    let next = from.index + 1;
    while (!signal.aborted) {
      const chunk = this.#chunkFrom(next);
      if (chunk.length === 0) {
        await this.#notifier.wait(signal);
        if (!signal.aborted) this.#checkOpen();
        continue;
      }
      next += chunk.length;
      yield chunk;
      this.#checkOpen();
    }
  }

  tail(): Promise<Position> {
    return this.#answer(() => this.#tail);
  }

  async saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    this.#checkOpen();
    if (this.#savingSnapshot) throw new Error('a snapshot was begun while another one is being saved');
    if (this.#snapshot !== undefined && position.index < this.#snapshot.position.index) return;
    this.#checkHolds(position);
    this.#savingSnapshot = true;
    try {
      const kept: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of chunks) {
        this.#checkOpen();
        kept.push(Buffer.from(chunk));
        bytes += chunk.length;
      }
      this.#checkOpen();
      this.#snapshot = { position, chunks: kept, bytes };
    } finally {
      this.#savingSnapshot = false;
    }
  }

  loadSnapshot(): Promise<StoredSnapshot | undefined> {
    return this.#answer(() => {
      const snapshot = this.#snapshot;
      return snapshot && { position: snapshot.position, chunks: walk(snapshot.chunks) };
    });
  }

  trim(index: number): Promise<void> {
    return this.#answer(() => {
      const upTo = Math.min(index, this.#snapshot?.position.index ?? 0);
      const forgotten = this.#entries.splice(0, Math.max(0, upTo - this.#base.index));
      this.#base = forgotten.at(-1)?.position ?? this.#base;
      for (const entry of forgotten) this.#entryBytes -= entry.bytes.length;
    });
  }

  sizeBytes(): number {
    return this.#entryBytes + (this.#snapshot?.bytes ?? 0);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#notifier.notify();
    return Promise.resolve();
  }

  #chunkFrom(index: number): readonly LoggedEntry[] {
    if (index <= this.#base.index) throw trimmed(index - 1, this.#base);
    const start = index - this.#base.index - 1;
    let end = start;
    for (let bytes = 0; end < this.#entries.length; end++) {
      bytes += this.#entries[end]!.bytes.length;
      if (bytes > this.#maxFollowBytes && end > start) break;
    }
    return this.#entries.slice(start, end);
  }

  #checkHolds(position: Position): void {
    if (position.index < this.#base.index) throw trimmed(position.index, this.#base);
    const known =
      position.index === this.#base.index ? this.#base : this.#entries[position.index - this.#base.index - 1]?.position;
    if (known?.hash === position.hash) return;
    const what = known === undefined ? `ends at entry ${this.#tail.index}` : `has another entry ${position.index}`;
    throw new EngineError('diverged', `the log ${what}: it is not the log that was applied up to ${position.index}`);
  }

  #checkOpen(): void {
    if (this.#closed) throw new EngineError('closed', 'the log engine is closed');
  }

  /** Runs `answer` and turns a thrown error into a rejection. */
  async #answer<Value>(answer: () => Value): Promise<Value> {
    this.#checkOpen();
    return answer();
  }
}

function trimmed(index: number, base: Position): EngineError {
  const message = `entry ${index + 1} is gone: the log begins behind entry ${base.index}, load the snapshot`;
  return new EngineError('trimmed', message);
}

async function* walk(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
