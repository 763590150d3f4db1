import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import * as grpc from '@grpc/grpc-js';
import { afterEach, expect, test } from 'vitest';
import { createGrpcServer, defaultTransportLimits } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';
import { settle, WatchBench } from './testing/watch-bench.ts';
import { defaultWatchLimits } from './watch-limits.ts';

const path = '/etcdserverpb.Watch/Watch';
const log = { debug() {}, warn() {}, error() {} };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Served {
  readonly bench: WatchBench;
  readonly address: string;
  /** The calls as seen by the service, in order of arrival. */
  readonly calls: DuplexCall[];
}

async function serve(): Promise<Served> {
  const bench = new WatchBench();
  const calls: DuplexCall[] = [];
  const handle = (call: DuplexCall): void => {
    calls.push(call);
    bench.service.handle(call);
  };
  const transport = createGrpcServer({
    routes: new Map([[path, { kind: 'bidi', handle }]]),
    onHttp: async () => ({ status: 404, headers: {}, body: '' }),
    log,
  });
  const { port } = await transport.listen('127.0.0.1', 0);
  cleanups.push(() => transport.close({ graceMs: 100 }));
  return { bench, address: `127.0.0.1:${port}`, calls };
}

class Reader {
  readonly revisions: number[] = [];
  readonly stream: grpc.ClientDuplexStream<Buffer, etcdserverpb.WatchResponse>;
  readonly #client: grpc.Client;
  #waiting: (() => void) | undefined;

  constructor(address: string) {
    this.#client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    this.stream = this.#client.makeBidiStreamRequest(
      path,
      (request: Buffer) => request,
      (response: Buffer) => decodeMessage(etcdserverpb.WatchResponseSchema, response),
    );
    this.stream.on('error', () => {});
    this.stream.on('data', ({ events }: etcdserverpb.WatchResponse) => {
      for (const { kv } of events) this.revisions.push(Number(kv?.modRevision));
      this.#waiting?.();
    });
    cleanups.push(() => {
      this.stream.cancel();
      this.#client.close();
    });
  }

  watch(key: string, rangeEnd: string): void {
    const request = encodeFramed(etcdserverpb.WatchRequestSchema, {
      requestUnion: { case: 'createRequest', value: { key: Buffer.from(key), rangeEnd: Buffer.from(rangeEnd) } },
    });
    this.stream.write(request.subarray(frameHeadroomBytes));
  }

  async until(count: number): Promise<void> {
    while (this.revisions.length < count) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

test('a stalled client takes bounded memory, delays no other client, and gets everything when it reads', async () => {
  const { bench, address, calls } = await serve();
  const [stalled, lively] = [new Reader(address), new Reader(address)];
  for (const reader of [stalled, lively]) reader.watch('a', 'b');
  await until(() => bench.service.counts.watchers === 2);
  bench.put('a');
  await stalled.until(1);
  stalled.stream.pause();

  const valueBytes = 8 * 1024;
  const count = 4000;
  const value = 'x'.repeat(valueBytes);
  let mostBuffered = 0;
  for (let n = 0; n < count; n++) {
    bench.put(`a${n}`, value);
    for (const call of calls) mostBuffered = Math.max(mostBuffered, call.bufferedBytes);
    if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await lively.until(count + 1);
  expect(bench.service.counts.slowWatchers).toBe(1);
  // 32 MiB of events; the memory held for a client is its buffer and one response.
  const responseBytes = defaultWatchLimits.maxResponseBytes + valueBytes;
  expect(mostBuffered).toBeLessThan(defaultTransportLimits.maxStreamBufferedBytes + responseBytes * 1.1);

  stalled.stream.resume();
  await stalled.until(count + 1);
  const all = Array.from({ length: count + 1 }, (_, n) => n + 2);
  expect(stalled.revisions).toEqual(all);
  expect(lively.revisions).toEqual(all);
  bench.put('a');
  await stalled.until(count + 2);
  expect(bench.service.counts.slowWatchers).toBe(0);
});

test('a client that disconnects while it is stalled leaves no state behind', async () => {
  const { bench, address } = await serve();
  const reader = new Reader(address);
  reader.watch('a', 'b');
  await until(() => bench.service.counts.watchers === 1);
  reader.stream.pause();
  const value = 'x'.repeat(64 * 1024);
  for (let n = 0; n < 200; n++) {
    bench.put('a', value);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(bench.service.counts.slowWatchers).toBe(1);
  reader.stream.cancel();
  await until(() => bench.service.counts.streams === 0);
  expect(bench.service.counts).toMatchObject({ watchers: 0, slowWatchers: 0 });
  bench.put('a');
  await settle();
});
