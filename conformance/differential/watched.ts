import { etcdserverpb, mvccpb } from '@tenure/protocol';
import type { WatchCreate, WatchStream } from '../client/watch-stream.ts';

const { WatchCreateRequest_FilterType: Filter } = etcdserverpb;
const watchId = 0n;

export interface WatchedEvents {
  readonly events: readonly mvccpb.Event[];
  /** Compaction ended the watch: its events end early. */
  readonly isCutShort: boolean;
}

/** One watch of a run, on its own stream, read only when the run ends. */
export class Watched {
  readonly #stream: WatchStream;
  readonly #request: WatchCreate;

  constructor(stream: WatchStream, request: WatchCreate) {
    this.#stream = stream;
    this.#request = request;
  }

  create(): Promise<etcdserverpb.WatchResponse> {
    return this.#stream.create(this.#request);
  }

  /** All events up to those of the key that is put and deleted last. */
  async collect(lastKey: Uint8Array): Promise<WatchedEvents> {
    const last = this.#request.filters?.includes(Filter.NODELETE)
      ? mvccpb.Event_EventType.PUT
      : mvccpb.Event_EventType.DELETE;
    const events: mvccpb.Event[] = [];
    for (;;) {
      const reply = await this.#stream.next(watchId);
      events.push(...reply.events);
      if (reply.canceled) return { events, isCutShort: true };
      const end = events.at(-1);
      if (end?.type === last && Buffer.compare(end.kv?.key ?? lastKey, lastKey) === 0)
        return { events, isCutShort: false };
    }
  }
}
