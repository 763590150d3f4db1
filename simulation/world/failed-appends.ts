import type { NodeClock } from '@tenure/test-support';
import { decodeEntry, type Origin } from '../../packages/server/src/replica/entry-codec.ts';
import type { Coverage } from './coverage.ts';
import type { DurableEntry } from './simulated-log.ts';

/**
 * Appends that did not succeed for their writer, to count what became of their commands: carried out after all, or
 * appended once more by the next leader.
 */
export class FailedAppends {
  readonly #coverage: Coverage;
  /** The writers of failed appends, by the origin of each command in them. */
  readonly #writers = new Map<string, NodeClock>();
  readonly #unknown = new WeakSet<Uint8Array>();
  readonly #durable = new WeakSet<Uint8Array>();

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  /** The engine tells the writer that the append was refused, or that its outcome is unknown. */
  told(bytes: Uint8Array, writer: NodeClock, isUnknown: boolean): void {
    if (isUnknown && this.#durable.has(bytes)) this.#found();
    if (isUnknown) this.#unknown.add(bytes);
    for (const { origin } of decodeEntry(bytes).commands) {
      if (origin !== undefined) this.#writers.set(nameOf(origin), writer);
    }
  }

  durable({ bytes, writer }: DurableEntry): void {
    this.#durable.add(bytes);
    if (this.#unknown.has(bytes)) {
      this.#found();
      return;
    }
    if (this.#writers.size === 0) return;
    for (const { origin } of decodeEntry(bytes).commands) {
      const failed = origin === undefined ? undefined : this.#writers.get(nameOf(origin));
      if (failed === undefined) continue;
      const by = failed === writer ? 'the same leader' : 'another leader';
      this.#coverage.count(`log: a command of a failed append was handed on to ${by}`);
    }
  }

  #found(): void {
    this.#coverage.count('log: an unknown append was in the log');
  }
}

function nameOf({ run, sequence }: Origin): string {
  return `${run}.${sequence}`;
}
