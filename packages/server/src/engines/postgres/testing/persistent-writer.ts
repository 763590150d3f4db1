import assert from 'node:assert/strict';
import { logStart, nextPosition } from '../../chain-hash.ts';
import { EngineError } from '../../engine-error.ts';
import type { LogEngine, Position } from '../../log-engine.ts';
import { entry } from '../../testing/engine-case.ts';

/** Appends numbered entries until it is stopped, and resolves each unknown outcome by reading, as a leader does. */
export class PersistentWriter {
  readonly acknowledged: string[] = [];
  unknown = 0;
  tail: Position = logStart;
  #stopped = false;
  readonly #engine: LogEngine;

  constructor(engine: LogEngine) {
    this.#engine = engine;
  }

  stop(): void {
    this.#stopped = true;
  }

  async run(): Promise<void> {
    for (let number = 1; !this.#stopped; number++) {
      const text = `entry ${number}`;
      await this.#write(text);
      this.acknowledged.push(text);
    }
  }

  async #write(text: string): Promise<void> {
    const expected = nextPosition(this.tail, entry(text));
    for (;;) {
      try {
        this.tail = await this.#engine.append([entry(text)], this.tail);
        return;
      } catch (error) {
        assert.ok(error instanceof EngineError, `${error}`);
        assert.ok(error.code === 'unknown' || error.code === 'unavailable', `${error}`);
        if (error.code === 'unavailable') continue;
        this.unknown += 1;
        const end = await this.#settledTail();
        if (end.index === this.tail.index) assert.deepEqual(end, this.tail);
        else assert.deepEqual(end, expected);
        this.tail = end;
        if (end.index === expected.index) return;
      }
    }
  }

  async #settledTail(): Promise<Position> {
    for (;;) {
      const end = await this.#engine.tail().catch((error: unknown) => {
        assert.equal((error as EngineError).code, 'unavailable', `${error}`);
      });
      if (end !== undefined) return end;
    }
  }
}
