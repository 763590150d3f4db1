import type { KvEvent } from '@tenure/core';
import { etcdserverpb, type mvccpb } from '@tenure/protocol';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { ScriptedCall } from './testing/scripted-call.ts';
import { settle, WatchBench } from './testing/watch-bench.ts';

const bufferBytes = 400;
const maxResponseBytes = 300;
const maxUnsentReplies = 3;
/** The largest revision made by a step, twice for prevKv, plus the wire's overhead. */
const maxRevisionBytes = 1500;

interface Wanted {
  readonly key: string;
  readonly rangeEnd: string;
  readonly startOffset: number | undefined;
  readonly filters: (0 | 1)[];
  readonly prevKv: boolean;
  readonly fragment: boolean;
}

interface Client {
  readonly call: ScriptedCall;
  readonly asked: (Wanted & { startRevision: number })[];
  gone: boolean;
}

/** A service, all events so far, and clients that send requests and read at random. */
class World {
  readonly bench: WatchBench;
  readonly clients: Client[] = [];
  readonly events: KvEvent[] = [];
  readonly compactRevisions = new Set<number>();

  /** A slice of 0 ms ends after each response, so that requests arrive in between. */
  constructor(sliceMs: number) {
    this.bench = new WatchBench({
      maxRequestBytes: 200,
      limits: { fragmentOverheadBytes: 0, maxResponseBytes, maxUnsentReplies, maxEventsPerStep: 5, sliceMs },
    });
  }

  write(changes: readonly (readonly [string, string | undefined])[]): void {
    const before = this.bench.revision;
    this.bench.writeTogether(Array.from(new Map(changes)));
    for (let at = before + 1; at <= this.bench.revision; at++)
      this.events.push(...this.bench.state.history.eventsAt(at));
  }

  compact(behind: number): void {
    const revision = this.bench.revision - behind;
    if (revision <= Math.max(this.bench.state.history.compactRevision, 0)) return;
    this.compactRevisions.add(revision);
    this.bench.compact(revision);
  }

  open(): void {
    this.clients.push({ call: this.bench.open(bufferBytes), asked: [], gone: false });
  }

  ask(client: Client, wanted: Wanted): void {
    const { startOffset } = wanted;
    const startRevision = startOffset === undefined ? 0 : Math.max(1, this.bench.revision + startOffset);
    client.asked.push({ ...wanted, startRevision });
    client.call.create(wanted.key, {
      rangeEnd: Buffer.from(wanted.rangeEnd, 'latin1'),
      startRevision: BigInt(startRevision),
      filters: wanted.filters,
      prevKv: wanted.prevKv,
      fragment: wanted.fragment,
    });
  }

  /** Every client reads until there is nothing left to send. */
  async finish(): Promise<void> {
    for (let quietRounds = 0; quietRounds < 5; quietRounds++) {
      for (const { call } of this.clients) call.read();
      await settle();
      const { slowWatchers } = this.bench.service.counts;
      if (slowWatchers > 0 || this.clients.some(({ call }) => call.bufferedBytes > 0)) quietRounds = 0;
    }
  }
}

/** One watch as seen by its client. */
interface Seen {
  readonly wanted: Wanted & { startRevision: number };
  readonly expected: readonly KvEvent[];
  readonly fragment: boolean;
  received: number;
  ended: 'compacted' | 'cancelled' | undefined;
}

/** Reads the responses of one call in order and checks each against the promises of the API. */
class Judge {
  readonly #world: World;
  readonly #client: Client;
  readonly #watches = new Map<bigint, Seen>();
  #asked = 0;
  #openFragment: bigint | undefined;

  constructor(world: World, client: Client) {
    this.#world = world;
    this.#client = client;
  }

  judge(): void {
    for (const response of this.#client.call.received) this.#next(response);
    if (this.#client.gone) return;
    expect(this.#asked).toBe(this.#client.asked.length);
    for (const { expected, received, ended } of this.#watches.values()) {
      if (ended === undefined) expect(received).toBe(expected.length);
    }
  }

  #next(response: etcdserverpb.WatchResponse): void {
    const { watchId, created, canceled } = response;
    if (this.#openFragment !== undefined) expect(watchId).toBe(this.#openFragment);
    this.#openFragment = response.fragment ? watchId : undefined;
    if (created) this.#created(response);
    else if (canceled) this.#canceled(response);
    else if (response.events.length > 0) this.#events(this.#openWatch(watchId), response);
    else this.#progress(response);
  }

  #created({ watchId, canceled, header, cancelReason }: etcdserverpb.WatchResponse): void {
    const wanted = this.#client.asked[this.#asked]!;
    this.#asked += 1;
    if (canceled) {
      expect(watchId).toBe(-1n);
      expect(cancelReason).toBe('mvcc: watcher range is empty');
      expect(wanted.rangeEnd !== '' && wanted.rangeEnd !== '\0' && wanted.rangeEnd <= wanted.key).toBe(true);
      return;
    }
    expect(this.#watches.has(watchId)).toBe(false);
    const from = wanted.startRevision === 0 ? Number(header!.revision) + 1 : wanted.startRevision;
    const expected = this.#world.events.filter((event) => event.kv.modRevision >= from && isWanted(wanted, event));
    this.#watches.set(watchId, { wanted, expected, fragment: wanted.fragment, received: 0, ended: undefined });
  }

  #canceled({ watchId, compactRevision }: etcdserverpb.WatchResponse): void {
    // The client may also cancel a watch that compaction has ended, which gets one more response.
    const watch = compactRevision === 0n ? this.#uncancelledWatch(watchId) : this.#openWatch(watchId);
    watch.ended = compactRevision === 0n ? 'cancelled' : 'compacted';
    if (compactRevision === 0n) return;
    // Only a watch that had yet to read a revision below the compact revision may end like this.
    const { startRevision } = watch.wanted;
    const last = watch.expected[watch.received - 1]?.kv.modRevision ?? 0;
    expect(Number(compactRevision)).toBeGreaterThan(Math.max(last, startRevision));
    expect(this.#world.compactRevisions).toContain(Number(compactRevision));
  }

  /** In order, each once, none missing, whole revisions; the header's revision is the watch's position. */
  #events(watch: Seen, response: etcdserverpb.WatchResponse): void {
    const { expected, wanted } = watch;
    for (const event of response.events) {
      this.#matches(event, expected[watch.received], wanted.prevKv);
      watch.received += 1;
    }
    if (response.fragment) {
      expect(watch.fragment).toBe(true);
      return;
    }
    const at = Number(response.header!.revision);
    expect(expected[watch.received - 1]!.kv.modRevision).toBeLessThanOrEqual(at);
    expect(expected[watch.received]?.kv.modRevision ?? Number.POSITIVE_INFINITY).toBeGreaterThan(at);
  }

  #matches(event: mvccpb.Event, expected: KvEvent | undefined, withPrevious: boolean): void {
    const { kv, prevKv } = expected ?? {};
    expect(event.type).toBe(expected?.type === 'put' ? 0 : 1);
    expect(event.kv).toMatchObject({
      modRevision: BigInt(kv!.modRevision),
      createRevision: BigInt(kv!.createRevision),
    });
    expect(textOf(event.kv?.key)).toBe(kv!.key);
    expect(textOf(event.kv?.value)).toBe(kv!.value);
    if (!withPrevious) expect(event.prevKv).toBeUndefined();
    else if (event.prevKv !== undefined) expect(textOf(event.prevKv.value)).toBe(prevKv!.value);
    else expect(prevKv === undefined || this.#world.compactRevisions.has(kv!.modRevision)).toBe(true);
  }

  /** Progress of the whole stream is a promise for each open watch. */
  #progress({ watchId, header }: etcdserverpb.WatchResponse): void {
    expect(watchId).toBe(-1n);
    for (const { expected, received, ended } of this.#watches.values()) {
      const next = expected[received]?.kv.modRevision ?? Number.POSITIVE_INFINITY;
      if (ended === undefined) expect(next).toBeGreaterThan(Number(header!.revision));
    }
  }

  #openWatch(watchId: bigint): Seen {
    const watch = this.#watches.get(watchId);
    if (watch === undefined || watch.ended !== undefined)
      throw new Error(`a response to watch ${watchId}, which is not open`);
    return watch;
  }

  #uncancelledWatch(watchId: bigint): Seen {
    const watch = this.#watches.get(watchId);
    if (watch === undefined || watch.ended === 'cancelled') throw new Error(`watch ${watchId} was cancelled twice`);
    return watch;
  }
}

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('latin1');
}

function isWanted({ key, rangeEnd, filters }: Wanted, event: KvEvent): boolean {
  if (filters.includes(event.type === 'put' ? 0 : 1)) return false;
  if (rangeEnd === '') return event.kv.key === key;
  return event.kv.key >= key && (rangeEnd === '\0' || event.kv.key < rangeEnd);
}

const key = fc.constantFrom('a', 'aa', 'b', 'c');
const value = fc.constantFrom('', 'x'.repeat(40), 'y'.repeat(120), undefined);
type Step = (world: World) => void | Promise<void>;
const which = fc.nat(5);
const onClient = (n: number, act: (client: Client, world: World) => void): Step => {
  return (world) => {
    const client = world.clients[n % Math.max(world.clients.length, 1)];
    if (client !== undefined && !client.gone) act(client, world);
  };
};
const wanted: fc.Arbitrary<Wanted> = fc.record({
  key,
  rangeEnd: fc.oneof(fc.constantFrom('', '\0'), key),
  startOffset: fc.option(fc.integer({ min: -12, max: 3 }), { nil: undefined }),
  filters: fc.constantFrom<(0 | 1)[]>([], [], [0], [1]),
  prevKv: fc.boolean(),
  fragment: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(fc.tuple(key, value), { minLength: 1, maxLength: 4 }).map(
      (changes): Step =>
        (world) =>
          world.write(changes),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Step>((world) => world.open()) },
  { weight: 4, arbitrary: fc.tuple(which, wanted).map(([n, each]) => onClient(n, (c, world) => world.ask(c, each))) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(which, fc.integer({ min: 1, max: 6 }))
      .map(([n, count]) => onClient(n, ({ call }) => call.read(count))),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(which, fc.nat(4))
      .map(([n, id]) =>
        onClient(n, ({ call }) => call.request({ case: 'cancelRequest', value: { watchId: BigInt(id) } })),
      ),
  },
  {
    weight: 1,
    arbitrary: which.map((n) => onClient(n, ({ call }) => call.request({ case: 'progressRequest', value: {} }))),
  },
  {
    weight: 1,
    arbitrary: fc.nat(5).map(
      (behind): Step =>
        (world) =>
          world.compact(behind),
    ),
  },
  { weight: 3, arbitrary: fc.constant<Step>(() => new Promise((resolve) => setImmediate(resolve))) },
);
const leave: fc.Arbitrary<Step> = which.map((n) =>
  onClient(n, (client) => {
    client.gone = true;
    client.call.disconnect();
  }),
);

test('for any requests, reads, stalls and disconnects of clients, responses keep the promises of the API', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 4),
      fc.array(fc.oneof({ weight: 30, arbitrary: step }, { weight: 1, arbitrary: leave }), {
        minLength: 5,
        maxLength: 80,
      }),
      async (sliceMs, steps) => {
        const world = new World(sliceMs);
        world.open();
        for (const each of steps) await each(world);
        await world.finish();
        for (const client of world.clients) {
          new Judge(world, client).judge();
          expect(client.call.highWaterBytes).toBeLessThan(bufferBytes + maxResponseBytes + maxRevisionBytes);
        }
        for (const { call } of world.clients) call.disconnect();
        expect(world.bench.service.counts).toMatchObject({ streams: 0, watchers: 0, slowWatchers: 0 });
      },
    ),
    { numRuns: { commit: 100, ci: 300, soak: 10_000 }[inject('effort')] },
  );
});
