import { StateMachine, type LeaseChange } from '@tenure/core';
import { logStart } from '../../packages/server/src/engines/chain-hash.ts';
import type { LoggedEntry, Position } from '../../packages/server/src/engines/log-engine.ts';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';

/** Every entry that was ever acknowledged or found in the log, applied from the first on. */
export class DiskHistory {
  readonly #entries: LoggedEntry[] = [];
  /** The first index of the last append. */
  #lastAppendIndex = 0;
  #state = new StateMachine();

  /** Of a server that has never loaded a snapshot. */
  get state(): StateMachine {
    return this.#state;
  }

  get end(): Position {
    return this.#entries.at(-1)?.position ?? logStart;
  }

  /** The end without the last append. */
  get endBeforeLastAppend(): Position {
    return this.#entries[this.#lastAppendIndex - 2]?.position ?? logStart;
  }

  add(entries: readonly LoggedEntry[]): LeaseChange[] {
    if (entries.length > 0) this.#lastAppendIndex = this.end.index + 1;
    const changes: LeaseChange[] = [];
    for (const entry of entries) {
      const copy = { position: entry.position, bytes: Buffer.from(entry.bytes) };
      this.#entries.push(copy);
      changes.push(...applyTo(this.#state, copy));
    }
    return changes;
  }

  /** The disk has lost the last append, and that cannot be told from an append that was never finished. */
  forgetLastAppend(): void {
    this.#entries.length = this.#lastAppendIndex - 1;
    this.#state = new StateMachine();
    for (const entry of this.#entries) applyTo(this.#state, entry);
  }
}

function applyTo(state: StateMachine, { position, bytes }: LoggedEntry): readonly LeaseChange[] {
  const { headers, commands } = decodeEntry(bytes);
  const { epoch, timeMs } = headers;
  const entry = { index: position.index, epoch, timeMs, commands: commands.map(decodeCommand) };
  return state.apply(entry, () => false).leaseChanges;
}
