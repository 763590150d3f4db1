import { methods, watchCreateRequest, watchHead } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { MessageStreams, whileOpen } from '../wire/message-streams.ts';

export interface WatcherCrowdOptions {
  readonly address: string;
  readonly connections: number;
  readonly streamsPerConnection: number;
  readonly watchersPerStream: number;
  /** The key of watcher `index`. */
  readonly keyOf: (index: number) => string;
}

/** Requests on each stream whose confirmation has not arrived: far below what its window takes. */
const maxUnconfirmed = 100;

interface WatchStream {
  readonly connection: MessageStreams;
  readonly stream: number;
  /** Index of its first watcher. */
  readonly first: number;
  requested: number;
  /** The index of each watcher by its id, which the server chooses. */
  readonly watchers: Map<number, number>;
}

/** Many watchers, spread evenly over streams. Each event is counted by its watcher. */
export class WatcherCrowd {
  readonly #options: WatcherCrowdOptions;
  readonly #streams: WatchStream[] = [];
  readonly #connections: MessageStreams[] = [];
  readonly #received: Uint32Array;
  #confirmed = 0;
  #arrived = 0;
  #awaited = 0;
  #resolve = (): void => {};
  /** When each event of the round under way arrived. */
  #arrivalsMs: number[] = [];

  constructor(options: WatcherCrowdOptions) {
    this.#options = options;
    this.#received = new Uint32Array(this.size);
  }

  get size(): number {
    const { connections, streamsPerConnection, watchersPerStream } = this.#options;
    return connections * streamsPerConnection * watchersPerStream;
  }

  /** Opens the streams; the watchers are created by `create`. */
  async open(): Promise<void> {
    const { address, connections, streamsPerConnection, watchersPerStream } = this.#options;
    for (let at = 0; at < connections; at += 1) {
      const base = at * streamsPerConnection;
      const connection = await MessageStreams.open({
        address,
        path: methods.watch,
        streams: streamsPerConnection,
        onMessage: (stream, message) => this.#onMessage(this.#streams[base + stream], message),
      });
      this.#connections.push(connection);
      for (let stream = 0; stream < streamsPerConnection; stream += 1) {
        const first = this.#streams.length * watchersPerStream;
        this.#streams.push({ connection, stream, first, requested: 0, watchers: new Map() });
      }
    }
  }

  /** Creates all watchers, and resolves when the last is confirmed. */
  async create(): Promise<void> {
    const done = new Promise<void>((resolve) => (this.#resolve = resolve));
    for (const stream of this.#streams) {
      for (let count = 0; count < maxUnconfirmed; count += 1) this.#request(stream);
    }
    for (const connection of this.#connections) connection.flush();
    await whileOpen(this.#connections, done);
  }

  /** Resolves with the time of each event, when each watcher has received one event since the call. */
  async oneEventEach(): Promise<readonly number[]> {
    this.#arrivalsMs = [];
    this.#arrived = 0;
    this.#awaited = this.size;
    await whileOpen(this.#connections, new Promise<void>((resolve) => (this.#resolve = resolve)));
    return this.#arrivalsMs;
  }

  /** Throws unless each watcher has received so many events in all. */
  expectEach(events: number): void {
    const wrong = this.#received.findIndex((count) => count !== events);
    if (wrong >= 0) throw new Error(`watcher ${wrong} received ${this.#received[wrong]} events, not ${events}`);
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #request(stream: WatchStream): void {
    if (stream.requested === this.#options.watchersPerStream) return;
    const key = this.#options.keyOf(stream.first + stream.requested);
    stream.requested += 1;
    stream.connection.send(stream.stream, frame(watchCreateRequest(key)));
  }

  #onMessage(stream: WatchStream | undefined, message: Buffer): void {
    if (stream === undefined) throw new Error('a message came before its stream was open');
    const { watchId, created, canceled, events } = watchHead(message);
    if (canceled) throw new Error('a watch was canceled');
    if (created) this.#onCreated(stream, watchId);
    if (events === 0) return;
    const watcher = stream.watchers.get(watchId);
    if (watcher === undefined) throw new Error(`an event for watch ${watchId}, which was not created`);
    this.#received[watcher] = (this.#received[watcher] ?? 0) + events;
    this.#arrived += events;
    const nowMs = performance.now();
    for (let event = 0; event < events; event += 1) this.#arrivalsMs.push(nowMs);
    if (this.#arrived === this.#awaited) this.#resolve();
  }

  #onCreated(stream: WatchStream, watchId: number): void {
    if (stream.watchers.has(watchId)) throw new Error(`watch ${watchId} was created twice`);
    stream.watchers.set(watchId, stream.first + stream.watchers.size);
    this.#confirmed += 1;
    if (this.#confirmed === this.size) this.#resolve();
    else this.#request(stream);
  }
}
