import { etcdserverpb, mvccpb } from '@tenure/protocol';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import type { AcknowledgedWrite } from './writer.ts';

interface SeenEvent {
  readonly revision: number;
  readonly key: string;
  readonly value: string | undefined;
}

/** All events below one prefix, as seen by a watcher that resumes after each crash from its last revision. */
export class EventLog {
  readonly #prefix: string;
  readonly #events: SeenEvent[] = [];
  #nextRevision = 1;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get length(): number {
    return this.#events.length;
  }

  /** Follows the events up to `revision`, on a stream of its own. Rejects if the server is gone before that. */
  async followTo(client: GrpcClient, revision: number): Promise<void> {
    if (revision < this.#nextRevision) return;
    const stream = client.bidi(etcdserverpb.Watch.method.watch);
    const key = Buffer.from(this.#prefix);
    const rangeEnd = Buffer.from(this.#prefix);
    rangeEnd[rangeEnd.length - 1] = (rangeEnd.at(-1) ?? 0) + 1;
    const startRevision = BigInt(this.#nextRevision);
    stream.send({ requestUnion: { case: 'createRequest', value: { key, rangeEnd, startRevision } } });
    stream.send({ requestUnion: { case: 'progressRequest', value: {} } });
    try {
      for (;;) {
        const reply = await stream.messages.take('events', () => true);
        if (reply.canceled) throw new Error(`the watch was cancelled: ${reply.cancelReason || 'compacted'}`);
        for (const event of reply.events) this.#take(event);
        const progress = reply.watchId === -1n ? Number(reply.header?.revision) : 0;
        if (progress >= revision) {
          this.#nextRevision = progress + 1;
          return;
        }
        if (reply.watchId === -1n) {
          stream.send({ requestUnion: { case: 'progressRequest', value: {} } });
        }
      }
    } finally {
      stream.cancel();
    }
  }

  /** Throws unless every acknowledged write has exactly one event, at its revision. */
  check(writes: readonly AcknowledgedWrite[]): void {
    const seen = new Map<string, string | undefined>();
    for (const { revision, key, value } of this.#events) {
      const at = `${revision} ${key}`;
      if (seen.has(at)) throw new Error(`the event of ${key} at revision ${revision} came twice`);
      seen.set(at, value);
    }
    for (const { key, value, revision } of writes) {
      const at = `${revision} ${key}`;
      if (!seen.has(at))
        throw new Error(`${key} = ${value} was acknowledged at revision ${revision}, without an event`);
      if (seen.get(at) !== value)
        throw new Error(`${key} at revision ${revision}: ${seen.get(at)} instead of ${value}`);
    }
  }

  #take(event: mvccpb.Event): void {
    const revision = Number(event.kv?.modRevision);
    const key = Buffer.from(event.kv?.key ?? []).toString();
    const last = this.#events.at(-1);
    if (last !== undefined && revision < last.revision) {
      throw new Error(`revision ${revision} came after ${last.revision}`);
    }
    const value = event.type === mvccpb.Event_EventType.PUT ? Buffer.from(event.kv?.value ?? []).toString() : undefined;
    this.#events.push({ revision, key, value });
    this.#nextRevision = Math.max(this.#nextRevision, revision);
  }
}
