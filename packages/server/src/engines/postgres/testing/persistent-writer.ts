import { expect } from 'vitest';
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
        if (!(error instanceof EngineError)) throw error;
        expect(['unknown', 'unavailable'], `${error}`).toContain(error.code);
        if (error.code === 'unavailable') continue;
        this.unknown += 1;
        const end = await this.#settledTail();
        if (end.index === this.tail.index) expect(end).toEqual(this.tail);
        else expect(end).toEqual(expected);
        this.tail = end;
        if (end.index === expected.index) return;
      }
    }
  }

  async #settledTail(): Promise<Position> {
    for (;;) {
      const end = await this.#engine.tail().catch((error: unknown) => {
        expect((error as EngineError).code, `${error}`).toBe('unavailable');
      });
      if (end !== undefined) return end;
    }
  }
}
