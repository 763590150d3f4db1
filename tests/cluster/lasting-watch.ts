import { mvccpb } from '@tenure/protocol';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import type { AcknowledgedWrite } from '../crash/writer.ts';
import type { ClusterMember } from './cluster-member.ts';

export interface SeenEvent {
  readonly revision: number;
  readonly key: string;
  /** Undefined for a delete. */
  readonly value: string | undefined;
  readonly atMs: number;
}

/** The delay before it tries another server. */
const retryMs = 50;
/** How long a caller waits for an event. */
const patienceMs = 60_000;

/**
 * A watch of all keys through one server after another: when one is gone, the next continues from the last revision.
 */
export class LastingWatch {
  readonly events: SeenEvent[] = [];
  readonly #members: () => readonly ClusterMember[];
  #at: number;
  #stream: WatchStream | undefined;
  #stopped = false;
  #arrived: () => void = () => undefined;
  #problem: Error | undefined;

  /** Begins with the member of that number. `members`: the servers that can be watched now. */
  constructor(members: () => readonly ClusterMember[], first: number) {
    this.#members = members;
    this.#at = first;
    void this.#run();
  }

  /** Resolves when the watch has seen an event for which `wanted` holds. */
  async seen(wanted: (event: SeenEvent) => boolean, withinMs = patienceMs): Promise<SeenEvent> {
    const untilMs = performance.now() + withinMs;
    for (let at = 0; ;) {
      if (this.#problem !== undefined) throw this.#problem;
      for (; at < this.events.length; at += 1) {
        const event = this.events[at] as SeenEvent;
        if (wanted(event)) return event;
      }
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0)
        throw new Error(`a watch saw ${this.events.length} events in ${withinMs} ms, not the wanted one`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#arrived = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The events up to that revision, one line each. */
  history(upTo: number): string {
    const lines: string[] = [];
    for (const { revision, key, value } of this.events) if (revision <= upTo) lines.push(`${revision} ${key} ${value}`);
    return lines.join('\n');
  }

  stop(): void {
    this.#stopped = true;
    this.#stream?.close();
  }

  /** Throws unless every acknowledged write has an event, at its revision, and no value of a key was written twice. */
  check(writes: readonly AcknowledgedWrite[]): void {
    if (this.#problem !== undefined) throw this.#problem;
    const at = new Map<string, string | undefined>();
    const values = new Set<string>();
    for (const { revision, key, value } of this.events) {
      if (at.has(`${revision} ${key}`)) throw new Error(`the event of ${key} at revision ${revision} came twice`);
      at.set(`${revision} ${key}`, value);
      if (value === undefined) continue;
      if (values.has(`${key}=${value}`)) throw new Error(`${key} = ${value} was applied twice`);
      values.add(`${key}=${value}`);
    }
    for (const { key, value, revision } of writes) {
      if (!at.has(`${revision} ${key}`) || at.get(`${revision} ${key}`) !== value) {
        throw new Error(`${key} = ${value} was acknowledged at revision ${revision}; the watch saw otherwise`);
      }
    }
  }

  /** The keys and values that result from the events up to that revision. */
  outcome(upTo: number): Map<string, string> {
    const held = new Map<string, string>();
    for (const { key, value, revision } of this.events) {
      if (revision > upTo) break;
      if (value === undefined) held.delete(key);
      else held.set(key, value);
    }
    return held;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const members = this.#members();
      const member = members[this.#at % Math.max(1, members.length)];
      this.#at += 1;
      if (member !== undefined) await this.#follow(member);
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  /** Until the server is gone. */
  async #follow(member: ClusterMember): Promise<void> {
    const stream = new WatchStream(member.client);
    this.#stream = stream;
    const startRevision = BigInt((this.events.at(-1)?.revision ?? 0) + 1);
    const all = Buffer.alloc(1);
    // The end of a stream rejects the wait for its next message, which ends this loop.
    let isOver = false;
    const over = stream.ended.then(() => (isOver = true));
    try {
      const created = await stream.create({ key: all, rangeEnd: all, startRevision });
      if (created.canceled) throw new Error(`the watch was refused: ${created.cancelReason}`);
      while (!isOver) {
        const reply = await Promise.race([stream.next(created.watchId).catch(() => undefined), over]);
        if (typeof reply === 'object') this.#take(reply.events);
      }
    } catch (error) {
      if (!isOver && member.isAlive && !this.#stopped) this.#fail(error);
    } finally {
      stream.close();
    }
  }

  #take(events: readonly mvccpb.Event[]): void {
    for (const event of events) {
      const revision = Number(event.kv?.modRevision);
      const key = Buffer.from(event.kv?.key ?? []).toString();
      const last = this.events.at(-1)?.revision ?? 0;
      if (revision < last) this.#fail(new Error(`revision ${revision} came after ${last}`));
      const isPut = event.type === mvccpb.Event_EventType.PUT;
      const value = isPut ? Buffer.from(event.kv?.value ?? []).toString() : undefined;
      this.events.push({ revision, key, value, atMs: performance.now() });
    }
    this.#arrived();
  }

  #fail(error: unknown): void {
    this.#problem ??= error instanceof Error ? error : new Error(String(error));
    this.#arrived();
  }
}
