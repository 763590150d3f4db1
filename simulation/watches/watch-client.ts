import { create, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
import type { ClientConnection, ClientStream } from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import type { WatchChecker } from './watch-checker.ts';
import { decodeWatchReply, type WatchReply, type WatchRequest } from './watch-observation.ts';
import type { WatchObserver } from './watch-observer.ts';

export interface WatchClientOptions {
  /** Differs from those of all other watch clients of the world. */
  readonly number: number;
  /** A new connection to some server. */
  readonly connect: () => ClientConnection;
  /** Of its own process. */
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly checker: WatchChecker;
  readonly coverage: Coverage;
  /** The process of this client stands still for so long, and receives nothing. */
  readonly standStill: (forMs: number) => void;
}

const path = '/etcdserverpb.Watch/Watch';
const { NOPUT, NODELETE } = etcdserverpb.WatchCreateRequest_FilterType;
const reconnectMs = { min: 5, max: 300 };
const actionMs = { min: 100, max: 900 };
const standstillMs = { min: 50, max: 2_500 };
const maxWatches = 3;

/**
 * A client with one stream of some watches. When the stream breaks, it resumes each watch on any server; a watch that
 * was canceled by a compaction starts again from the compact revision.
 */
export class WatchClient {
  readonly #options: WatchClientOptions;
  readonly #observers: WatchObserver[] = [];
  /** The watches of the current stream, by id, with the start revision of each. */
  #created = new Map<bigint, { observer: WatchObserver; startRevision: number }>();
  #connection: ClientConnection | undefined;
  #stream: ClientStream | undefined;
  #nextId = 1n;
  #isSettled = false;

  constructor(options: WatchClientOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, random } = this.#options;
    clock.after(random.between(0, 500), () => {
      this.#observe();
      this.#open();
      this.#act();
    });
  }

  /** From here on it only reads, and resumes after a break. */
  settle(): void {
    this.#isSettled = true;
  }

  #act(): void {
    const { clock, random } = this.#options;
    clock.after(random.between(actionMs.min, actionMs.max), () => {
      if (this.#isSettled) return;
      this.#disturb();
      this.#act();
    });
  }

  #disturb(): void {
    const { random, coverage, standStill } = this.#options;
    const roll = random.next();
    if (roll < 0.35) {
      this.#write({ requestUnion: { case: 'progressRequest', value: {} } });
      coverage.count('watches: progress requested');
    } else if (roll < 0.55) {
      for (const { observer } of this.#created.values()) observer.slowed();
      coverage.count('watches: the reader stood still');
      standStill(random.between(standstillMs.min, standstillMs.max));
    } else if (roll < 0.7) {
      coverage.count('watches: the client left its server');
      this.#connection?.close();
    } else if (roll < 0.85 && this.#observers.length < maxWatches) {
      const observer = this.#observe();
      if (this.#stream !== undefined) this.#create(observer);
    }
  }

  #observe(): WatchObserver {
    const { checker, number } = this.#options;
    const observer = checker.observe(`watch ${number}.${this.#observers.length + 1}`, this.#request());
    this.#observers.push(observer);
    return observer;
  }

  #request(): WatchRequest {
    const { random, checker } = this.#options;
    const { currentRevision } = checker.oracle;
    const starts = [0, 0, 1, Math.max(1, currentRevision - random.below(20)), currentRevision + random.integer(1, 15)];
    const [key, rangeEnd] = random.pick([
      ['\0', '\0'],
      ['m/', 'm0'],
      ['m/', 'm0'],
      ['p/0', ''],
      ['m/1', 'm/4'],
    ] as const);
    return {
      key,
      rangeEnd,
      startRevision: random.pick(starts),
      prevKv: random.chance(0.5),
      fragment: random.chance(0.5),
      progressNotify: random.chance(0.5),
      noPut: random.chance(0.1),
      noDelete: random.chance(0.1),
    };
  }

  #open(): void {
    const { connect } = this.#options;
    this.#created = new Map();
    const connection = connect();
    this.#connection = connection;
    this.#stream = connection.open(path, {
      onMessage: (message) => {
        if (this.#connection === connection) this.#receive(decodeWatchReply(message));
      },
      onEnd: () => {
        if (this.#connection === connection) this.#ended();
      },
    });
    for (const observer of this.#observers) this.#create(observer);
  }

  #ended(): void {
    const { clock, random, coverage } = this.#options;
    this.#connection?.close();
    this.#connection = undefined;
    this.#stream = undefined;
    for (const observer of this.#observers) observer.ended();
    coverage.count('watches: a stream ended');
    clock.after(random.between(reconnectMs.min, reconnectMs.max), () => this.#open());
  }

  /** By the last event, or by the newest header: both resume without a gap. */
  #create(observer: WatchObserver): void {
    const { random, coverage } = this.#options;
    const { request, resumeRevision, bookmark } = observer;
    const resumed = random.chance(0.5) ? resumeRevision : bookmark;
    if (resumed !== undefined) coverage.count('watches: resumed');
    const startRevision = resumed ?? request.startRevision;
    const watchId = this.#nextId;
    this.#nextId += 1n;
    this.#created.set(watchId, { observer, startRevision });
    const { prevKv, fragment, progressNotify } = request;
    const filters = [...(request.noPut ? [NOPUT] : []), ...(request.noDelete ? [NODELETE] : [])];
    this.#write({
      requestUnion: {
        case: 'createRequest',
        value: {
          key: Buffer.from(request.key, 'latin1'),
          rangeEnd: Buffer.from(request.rangeEnd, 'latin1'),
          startRevision: BigInt(startRevision),
          watchId,
          prevKv,
          fragment,
          progressNotify,
          filters,
        },
      },
    });
  }

  #receive(reply: WatchReply): void {
    const { coverage } = this.#options;
    if (reply.watchId === -1n && !reply.isCreated) {
      coverage.count('watches: progress of a stream');
      for (const { observer } of this.#created.values()) observer.progress(reply);
      return;
    }
    const watch = this.#created.get(reply.watchId);
    // A refused watch has no id; a canceled one may have answers on their way.
    if (watch === undefined) return;
    const { observer, startRevision } = watch;
    if (reply.isCreated) observer.created(startRevision, reply);
    else if (reply.isCanceled) {
      coverage.count('watches: canceled by a compaction');
      if (observer.isSlow) coverage.count('watches: fell behind across a compaction');
      this.#created.delete(reply.watchId);
      observer.compacted(reply);
      this.#create(observer);
    } else if (reply.events.length === 0) {
      coverage.count('watches: progress of a watch');
      observer.progress(reply);
    } else {
      coverage.count('watches: events', reply.events.length);
      if (reply.isFragment) coverage.count('watches: fragments');
      observer.events(reply);
    }
  }

  #write(message: MessageInitShape<typeof etcdserverpb.WatchRequestSchema>): void {
    const schema = etcdserverpb.WatchRequestSchema;
    this.#stream?.write(toBinary(schema, create(schema, message)));
  }
}
