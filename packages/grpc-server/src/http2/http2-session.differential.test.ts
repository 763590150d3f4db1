import { createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
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
import { brokenSteps, type FrameSequence, frameSequence } from './testing/frame-sequence.ts';
import { type RecordedStream, SessionServer } from './testing/session-server.ts';
import { flag, setting } from './frame-type.ts';

/*
 * The same frames are sent to this session and to nghttp2, in the server of Node: what comes back means the same, but
 * for the differences that are named here. Both servers answer each request with its own body.
 */

const effort = inject('effort');
const seed = Math.abs(inject('seed'));
const rounds = { commit: 6, ci: 60, soak: 2000 }[effort];
/** PINGs, one after the other, after which a server that goes on has answered what it answers. */
const roundTrips = 4;
/** The first stream stays open: with a call a client may send PINGs. */
const firstRequest = http2Frame(frameTypes.headers, endHeaders, 1, headerBlock(grpcHeaders('/t.T/Any')));

/** What is different by intention: the step, and the outcomes here and there. */
const named: Readonly<Record<string, RegExp>> = {
  // RFC 9113, section 5.1: STREAM_CLOSED for the stream. nghttp2 ends the connection, or remembers the stream no more.
  'data after the end': /^ended: false \(-1\), true \(5\)$/,
  // Section 5.1.1: an error of the connection. nghttp2 ignores headers of streams that it has forgotten.
  'headers of an earlier stream': /^ended: true \(5\), false \(-1\)$/,
  // Sections 6.3 and 6.9: errors of the stream. nghttp2 ends the connection, with a code that its versions differ in.
  'priority of a wrong size': /^ended: false \(-1\), true \(6\)$/,
  'window of a stream that is too large': /^ended: false \(-1\), true \([23]\)$/,
  'window of a stream by nothing': /^ended: false \(-1\), true \([12]\)$/,
  // Section 6.3: an error of the connection. From 1.69 on, nghttp2 ignores all PRIORITY frames.
  'priority without a stream': /^ended: true \(1\), false \(-1\)$/,
  // Section 8.1.1: an error of the stream. Node with nghttp2 1.69 may end the connection.
  'a length that is exceeded': /^ended: false \(-1\), true \(2\)$/,
  // Section 8.2.1: such a request is malformed. nghttp2 drops the header, and serves the request without it.
  'a line feed': /^stream: reset 1 , (nothing|answered 0 |begun 0 )$/,
  'a zero byte': /^stream: reset 1 , (nothing|answered 0 |begun 0 )$/,
};
/** The code that Node gives to what its session has not sent a GOAWAY for itself. */
const internalError = 2;

let ours: SessionServer;
let node: Http2Server;
const nodeSockets: Socket[] = [];

const answer = HeaderBlock.once([[':status', '200', 'plain']]);

function echo(stream: RecordedStream): void {
  stream.sendHead(answer);
  stream.sendData(stream.body);
  stream.sendEnd();
}

beforeAll(async () => {
  ours = await SessionServer.start({}, echo);
  node = createHttp2Server({ settings: { maxConcurrentStreams: 100, maxHeaderListSize: 16_384 } });
  node.on('connection', (socket: Socket) => nodeSockets.push(socket));
  node.on('sessionError', () => {});
  // Node 22 ends the process when a session that is destroyed while it reads opens one more stream.
  node.on('session', (session) => {
    const destroy = session.destroy.bind(session);
    session.destroy = (error, code) => void setImmediate(() => destroy(error, code));
  });
  node.on('stream', (stream) => {
    const body: Buffer[] = [];
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => body.push(chunk));
    stream.on('end', () => {
      if (stream.destroyed || stream.aborted) return;
      stream.respond({ ':status': 200 });
      stream.end(Buffer.concat(body));
    });
  });
  await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  await ours.close();
  // A session of Node that has found a fault may last until its socket is gone.
  for (const socket of nodeSockets) socket.destroy();
  await new Promise((resolve) => node.close(resolve));
});

/** What a client learns of one stream. */
interface StreamOutcome {
  status: 'answered' | 'begun' | 'reset';
  resetCode: number;
  body: string;
}

interface Outcome {
  /** -1 while the connection goes on. */
  readonly goAwayCode: number;
  readonly isEnded: boolean;
  readonly streams: Map<number, StreamOutcome>;
}

async function play(port: number, { frames }: FrameSequence, random: SeededRandom): Promise<Outcome> {
  const client = new FrameClient(port).open([setting.enablePush, 0]);
  const bytes = Buffer.concat([firstRequest, ...frames]);
  for (let at = 0; at < bytes.length;) {
    const size = random.chance(0.5) ? bytes.length : 1 + random.below(40);
    client.send(bytes.subarray(at, at + size));
    at += size;
    if (random.chance(0.2)) await new Promise((resolve) => setImmediate(resolve));
  }
  // A server that has found a fault may leave the closing to the client.
  const isOver = (): boolean => client.isClosed || client.frames.some(({ type }) => type === frameTypes.goaway);
  for (let i = 0; i < roundTrips && !isOver(); i++)
    await Promise.race([client.sync(0xabcd00 + i).catch(() => {}), over(client, isOver)]);
  const outcome = outcomeOf(client);
  await client.destroy();
  return outcome;
}

/** Resolves also when the connection ends before. */
function over(client: FrameClient, isOver: () => boolean): Promise<void> {
  return client.until(isOver).catch(() => {});
}

function outcomeOf({ frames, isClosed }: FrameClient): Outcome {
  const streams = new Map<number, StreamOutcome>();
  let goAwayCode = -1;
  for (const { type, flags, streamId, payload } of frames) {
    if (type === frameTypes.goaway) goAwayCode = payload.readUInt32BE(4);
    if (type !== frameTypes.headers && type !== frameTypes.data && type !== frameTypes.rstStream) continue;
    const stream = streams.get(streamId) ?? { status: 'begun', resetCode: 0, body: '' };
    streams.set(streamId, stream);
    if (type === frameTypes.rstStream) {
      // An answer that is complete stays one.
      if (stream.status !== 'answered') stream.status = 'reset';
      stream.resetCode = payload.readUInt32BE(0);
    } else {
      if (type === frameTypes.data) stream.body += payload.toString('hex');
      if ((flags & flag.endStream) !== 0) stream.status = 'answered';
    }
  }
  return { goAwayCode, isEnded: isClosed || goAwayCode >= 0, streams };
}

/** The differences, each as a text. */
function differences(own: Outcome, other: Outcome): string[] {
  if (own.isEnded !== other.isEnded)
    return [`ended: ${own.isEnded} (${own.goAwayCode}), ${other.isEnded} (${other.goAwayCode})`];
  if (own.isEnded) {
    const isSame = own.goAwayCode === other.goAwayCode || other.goAwayCode === internalError;
    return isSame ? [] : [`GOAWAY ${own.goAwayCode}, ${other.goAwayCode}`];
  }
  const found: string[] = [];
  for (const id of new Set([...own.streams.keys(), ...other.streams.keys()])) {
    const one = own.streams.get(id);
    const two = other.streams.get(id);
    const texts = [one, two].map((each) =>
      each === undefined ? 'nothing' : `${each.status} ${each.resetCode} ${each.body}`,
    );
    if (texts[0] !== texts[1]) found.push(`stream: ${texts.join(', ')}`);
  }
  return found;
}

async function compare(brokenStep: string | undefined, round: number): Promise<string[]> {
  const number = seed + round * 1000 + brokenSteps.indexOf(brokenStep ?? '');
  const sequence = frameSequence(new SeededRandom(number), brokenStep);
  const own = await play(ours.port, sequence, new SeededRandom(number));
  const other = await play((node.address() as AddressInfo).port, sequence, new SeededRandom(number));
  const found = differences(own, other).filter((each) => !(named[brokenStep ?? '']?.test(each) ?? false));
  return found.map((each) => `${each} (seed ${number}: ${sequence.steps.join(', ')})`);
}

test('valid frames have the same outcome as with nghttp2', async () => {
  for (let round = 0; round < 10 * rounds; round++) expect(await compare(undefined, round)).toEqual([]);
});

test.each(brokenSteps)('%s', async (step) => {
  for (let round = 0; round < rounds; round++) expect(await compare(step, round)).toEqual([]);
});
