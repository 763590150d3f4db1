import { frameMessage, hostileKinds, type HostileTarget, playHostileInputs, RawClient } from '@tenure/test-support';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '../calls/grpc-status.ts';
import { echo, startTestServer, type TestServer } from '@tenure/test-support';

const message = Buffer.from('a request with some bytes');
const target: HostileTarget = {
  methods: [
    { path: '/t.T/Echo', message },
    { path: '/t.T/Later', message },
    { path: '/t.T/Large', message },
    { path: '/t.T/Repeat', message },
    { path: '/t.T/Talk', message },
  ],
};
const effort = inject('effort');
const firstSeed = Math.abs(inject('seed'));
const connectionsPerRound = { commit: 10, ci: 40, soak: 40 }[effort] * hostileKinds.length;
/** The first rounds fill caches and pools; growth is measured between the later rounds. */
const fillingRounds = 2;
const judgedRounds = { commit: 2, ci: 3, soak: 100 }[effort];

let server: TestServer;
const stray: unknown[] = [];
const collect = (error: unknown): void => void stray.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', collect);
  process.on('uncaughtException', collect);
  server = await startTestServer(
    {
      '/t.T/Echo': { kind: 'unary', handle: echo },
      '/t.T/Later': {
        kind: 'unary',
        handle: (request) => new Promise((resolve) => setImmediate(resolve, echo(request))),
      },
      '/t.T/Large': { kind: 'unary', handle: () => Buffer.alloc(100_000) },
      '/t.T/Repeat': {
        kind: 'serverStream',
        handle: async (request, _call, send) => {
          for (let i = 0; i < 100; i++) await send(echo(request));
        },
      },
      '/t.T/Talk': {
        kind: 'bidi',
        handle: (call) => {
          call.onMessage = (received) => {
            if (!call.send(echo(received))) call.pause();
          };
          call.onDrain = () => call.resume();
          call.onHalfClose = () => call.end(new GrpcStatus(GrpcCode.ok, ''));
        },
      },
    },
    {
      maxReceiveBytes: 100_000,
      prefaceTimeoutMs: 1000,
      http1HeadersTimeoutMs: 1000,
      http1RequestTimeoutMs: 1000,
      keepAliveTimeoutMs: 100,
      sweepIntervalMs: 30,
    },
  );
});

afterAll(async () => {
  await server.transport.close({ graceMs: 100 });
  process.removeListener('unhandledRejection', collect);
  process.removeListener('uncaughtException', collect);
});

async function playRound(round: number): Promise<number> {
  const { port, transport } = server;
  const seed = firstSeed + round * connectionsPerRound;
  const options = { host: '127.0.0.1', port, target, firstSeed: seed, concurrency: 16 };
  const inputs = await playHostileInputs({ ...options, connections: connectionsPerRound });
  const client = new RawClient(port);
  const reply = await client.call({ path: '/t.T/Echo', chunks: [frameMessage(message)] });
  await client.close();
  expect(reply.body, `after seed ${seed}`).toEqual(frameMessage(message));
  await expect.poll(() => transport.connections, { timeout: 30_000 }).toBe(0);
  expect(transport.calls, `after seed ${seed}`).toBe(0);
  return inputs;
}

const timeout = 1_800_000;

test(`after any input (seed ${firstSeed}) the server runs and holds no state`, { timeout }, async () => {
  for (let round = 0; round < fillingRounds; round++) await playRound(round);
  const before = process.memoryUsage();
  let inputs = 0;
  for (let round = 0; round < judgedRounds; round++) inputs += await playRound(fillingRounds + round);
  const after = process.memoryUsage();
  expect(stray).toEqual([]);
  expect(inputs).toBeGreaterThan(10 * judgedRounds * connectionsPerRound);
  expect(after.rss - before.rss).toBeLessThan(150 << 20);
});
