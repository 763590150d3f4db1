import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  endHeaders,
  FrameClient,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  SeededRandom,
} from '@tenure/test-support';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { HeaderBlock } from './header-block.ts';
import { brokenSteps, frameSequence } from './testing/frame-sequence.ts';
import { type RecordedStream, SessionServer } from './testing/session-server.ts';

const effort = inject('effort');
const firstSeed = Math.abs(inject('seed'));
/** Frames, valid, broken, or damaged: some 6 for each connection. */
const connectionsPerRound = { commit: 700, ci: 5000, soak: 40_000 }[effort];
const rounds = 4;
const concurrency = 20;
/** Code that is compiled late, and the buffers of sockets that are being closed. */
const maxGrowthBytes = 8 << 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const answer = HeaderBlock.once([[':status', '200', 'plain']]);
const firstRequest = http2Frame(frameTypes.headers, endHeaders, 1, headerBlock(grpcHeaders('/t.T/Any')));
const stray: unknown[] = [];
const note = (error: unknown): void => void stray.push(error);
const patience = { timeout: 20_000, interval: 50 };
let server: SessionServer;

function echo(stream: RecordedStream): void {
  stream.sendHead(answer);
  stream.sendData(stream.body);
  stream.sendEnd();
}

beforeAll(async () => {
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
  server = await SessionServer.start({}, echo);
});

afterAll(async () => {
  await server.close();
  process.removeListener('uncaughtException', note);
  process.removeListener('unhandledRejection', note);
});

/** One connection, which is cut when its bytes have been sent or the server has ended it. Resolves with its frames. */
async function attack(seed: number): Promise<number> {
  const random = new SeededRandom(seed);
  const { frames } = frameSequence(random, random.chance(0.3) ? random.pick(brokenSteps) : undefined);
  const damaged = frames.map((frame) => (random.chance(0.1) ? random.damage(frame) : frame));
  const bytes = Buffer.concat([firstRequest, ...damaged]);
  const client = new FrameClient(server.port).open();
  const cut = random.below(bytes.length + 1);
  client.send(bytes.subarray(0, cut)).send(bytes.subarray(cut));
  await Promise.race([client.closed, client.frame(frameTypes.settings, 1).catch(() => {})]);
  if (random.chance(0.5)) await new Promise((resolve) => setImmediate(resolve));
  await client.destroy();
  return damaged.length + 1;
}

async function playRound(round: number): Promise<number> {
  let next = firstSeed + round * connectionsPerRound;
  const end = next + connectionsPerRound;
  let frames = 0;
  const player = async (): Promise<void> => {
    while (next < end) {
      const count = await attack(next++);
      frames += count;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, player));
  await expect.poll(() => server.connections.every(({ session }) => session?.socket.closed), patience).toBe(true);
  for (const { heldInputBytes, heldOutputBytes, streams, session } of server.connections) {
    expect([heldInputBytes, heldOutputBytes, session?.streams.size]).toEqual([0, 0, 0]);
    for (const stream of streams.values())
      expect([stream.closes, stream.pendingBytes, stream.heldBytes]).toEqual([1, 0, 0]);
  }
  server.connections.length = 0;
  return frames;
}

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(`after any frames nothing is held (seed ${firstSeed})`, { timeout: 1_800_000 }, async () => {
  let frames = await playRound(0);
  const before = usedBytes();
  for (let round = 1; round < rounds; round++) frames += await playRound(round);
  expect(stray).toEqual([]);
  expect(frames).toBeGreaterThan(rounds * connectionsPerRound * 5);
  // Memory of buffers is freed some time after the collector has found them.
  await expect.poll(() => usedBytes() - before, patience).toBeLessThan(maxGrowthBytes);
  console.log(`${frames} frames, memory grew by ${usedBytes() - before} bytes`);
});
