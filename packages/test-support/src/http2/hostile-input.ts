import { gzipSync } from 'node:zlib';
import {
  endHeaders,
  endStream,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  http2Preface,
  settingsFrame,
} from './http2-frames.ts';
import { frameMessage } from './raw-call.ts';
import { SeededRandom } from '../seeded-random.ts';

/** The targets of hostile inputs: methods of the server under test, each with a valid request. */
export interface HostileTarget {
  readonly methods: readonly [HostileMethod, ...HostileMethod[]];
}

export interface HostileMethod {
  readonly path: string;
  /** A request, as protobuf without its prefix. */
  readonly message: Buffer;
}

/** One connection's worth of input. */
export interface HostileInput {
  readonly kind: HostileKind;
  /** Sent one after the other, each in a write of its own. */
  readonly chunks: readonly Buffer[];
  /** Frames, requests or blobs in it: the number of inputs. */
  readonly count: number;
  /** How the client closes: it ends its side and waits, cuts the connection, or holds it for a moment first. */
  readonly ending: 'end' | 'cut' | 'hold';
}

const generators = {
  garbage,
  preface,
  http1,
  frames,
  calls,
  http2Requests,
  headerFlood,
  continuationFlood,
  rapidReset,
  controlFlood,
  zeroWindow,
} as const;

export type HostileKind = keyof typeof generators;

/** Every kind of input, in the order used by the seeds. */
export const hostileKinds = Object.keys(generators) as [HostileKind, ...HostileKind[]];

/** The input of a seed: always the same for the same target. Consecutive seeds use every kind in turn. */
export function hostileInput(seed: number, target: HostileTarget): HostileInput {
  const random = new SeededRandom(seed);
  const kind = hostileKinds[seed % hostileKinds.length] ?? 'garbage';
  const parts = generators[kind](random, target);
  const ending = random.pick(['end', 'cut', 'cut', 'cut', 'hold'] as const);
  return { kind, chunks: cut(random, parts), count: parts.length, ending };
}

/** The parts as writes: often as one, sometimes split at arbitrary places. */
function cut(random: SeededRandom, parts: readonly Buffer[]): Buffer[] {
  const all = Buffer.concat(parts);
  if (random.chance(0.6)) return [all];
  const at = random.below(all.length + 1);
  return [all.subarray(0, at), all.subarray(at)];
}

function garbage(random: SeededRandom): Buffer[] {
  return [random.bytes(random.below(200))];
}

/** A preface that is correct only for some bytes, or a correct one followed by garbage. */
function preface(random: SeededRandom): Buffer[] {
  const damaged = random.chance(0.5) ? random.damage(http2Preface) : http2Preface;
  return [damaged, random.bytes(random.below(100))];
}

function http1(random: SeededRandom): Buffer[] {
  const verb = random.pick(['GET', 'POST', 'PUT', 'CONNECT', 'OPTIONS', 'PRI', 'get', '\0\0']);
  const path = random.pick(['/', '/health', '/version', '/metrics', '//', '*', '/%ff%00', `/${'a'.repeat(3000)}`]);
  const headers = random.pick([
    'Host: localhost\r\n',
    'Host: x\r\nContent-Length: 99999999999999999999\r\n',
    'Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n',
    'Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n',
    'Host: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n',
    `Host: x\r\nX: ${'x'.repeat(20_000)}\r\n`,
    'X'.repeat(500),
  ]);
  const request = Buffer.from(`${verb} ${path} HTTP/1.1\r\n${headers}\r\nbody`, 'latin1');
  const requests = Array.from({ length: 1 + random.below(4) }, () => request);
  return random.chance(0.5) ? requests.map((bytes) => random.damage(bytes)) : requests;
}

/** Frames of every type, known or not, with flags, streams and payloads that are rarely valid. */
function frames(random: SeededRandom): Buffer[] {
  const sent = opening(random);
  const count = 1 + random.below(40);
  for (let i = 0; i < count; i++) {
    const type = random.below(12);
    const payload = random.bytes(random.pick([0, 4, 5, 6, 8, random.below(64)]));
    const streamId = random.pick([0, 1, 3, 5, random.below(100), random.uint32()]);
    sent.push(http2Frame(type, random.below(256), streamId, payload));
  }
  return sent;
}

/** Calls that are almost valid: a header, the framing of a message, or the message itself is wrong. */
function calls(random: SeededRandom, target: HostileTarget): Buffer[] {
  const sent = opening(random);
  const count = 1 + random.below(30);
  for (let i = 0; i < count; i++) {
    const streamId = 2 * i + 1;
    const method = random.pick(target.methods);
    const block = headerBlock(grpcHeaders(random.chance(0.05) ? '/no/Such' : method.path, oddHeaders(random)));
    sent.push(http2Frame(frameTypes.headers, endHeaders, streamId, block));
    const body = oddBody(random, method);
    const at = random.below(body.length + 1);
    sent.push(http2Frame(frameTypes.data, 0, streamId, body.subarray(0, at)));
    sent.push(http2Frame(frameTypes.data, random.chance(0.8) ? endStream : 0, streamId, body.subarray(at)));
    if (random.chance(0.1)) sent.push(resetFrame(streamId, random.pick([0, 1, 8])));
  }
  return sent;
}

/** Twenty kilobytes that inflate to twenty megabytes. */
const gzipBomb = gzipSync(Buffer.alloc(20_000_000));

function oddHeaders(random: SeededRandom): [string, string][] {
  const odd: [string, string][] = [];
  if (random.chance(0.2)) odd.push(['grpc-timeout', random.pick(['1n', '0S', '99999999H', '1', 'x', '-1S', ''])]);
  if (random.chance(0.3)) odd.push(['grpc-encoding', random.pick(['gzip', 'identity', 'snappy', ''])]);
  if (random.chance(0.1)) odd.push([random.pick(['X-Upper', ':path', 'te', 'connection', 'a b']), 'x']);
  if (random.chance(0.1)) odd.push(['x-bin', random.bytes(random.below(50)).toString('latin1')]);
  return odd;
}

function oddBody(random: SeededRandom, method: HostileMethod): Buffer {
  const message = random.chance(0.7) ? random.damage(method.message) : method.message;
  const kind = random.below(8);
  if (kind === 0) return frameMessage(gzipSync(message), 1);
  if (kind === 1) return frameMessage(gzipBomb, 1);
  if (kind === 2) return random.damage(frameMessage(message, random.below(3)));
  if (kind === 3) return Buffer.concat([frameMessage(message), frameMessage(message)]);
  return frameMessage(message);
}

/** Requests over HTTP/2 that are not gRPC, or gRPC with a wrong method, end or trailers. */
function http2Requests(random: SeededRandom, target: HostileTarget): Buffer[] {
  const sent = opening(random);
  const count = 1 + random.below(30);
  for (let i = 0; i < count; i++) {
    const streamId = 2 * i + 1;
    const fields: [string, string][] = [
      [':method', random.pick(['GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT', 'DELETE'])],
      [':scheme', random.pick(['http', 'https', ''])],
      [':path', random.pick(['/', '/health', '/version', '*', '', random.pick(target.methods).path])],
      [':authority', 'localhost'],
    ];
    if (random.chance(0.3)) fields.push(['content-type', random.pick(['application/grpc', 'application/json', ''])]);
    if (random.chance(0.2)) fields.push(['content-length', random.pick(['0', '5', '-1', '99999999999999999999'])]);
    const flags = endHeaders | (random.chance(0.6) ? endStream : 0);
    sent.push(http2Frame(frameTypes.headers, flags, streamId, headerBlock(fields)));
    if (random.chance(0.4)) sent.push(http2Frame(frameTypes.data, 0, streamId, random.bytes(random.below(50))));
    const trailers = headerBlock([['x-trailer', 'x']]);
    if (random.chance(0.2)) sent.push(http2Frame(frameTypes.headers, endHeaders | endStream, streamId, trailers));
    if (random.chance(0.2)) sent.push(resetFrame(streamId, random.pick([0, 1, 8])));
  }
  return sent;
}

function headerFlood(random: SeededRandom, target: HostileTarget): Buffer[] {
  const many: [string, string][] = [];
  const count = random.below(300);
  for (let i = 0; i < count; i++) many.push([`x-${i}`, 'x'.repeat(random.below(100))]);
  const block = headerBlock(grpcHeaders(random.pick(target.methods).path, many));
  const sent = opening(random);
  for (let at = 0; at < block.length; at += 16_000) {
    const flags = at + 16_000 >= block.length ? endHeaders : 0;
    const piece = block.subarray(at, at + 16_000);
    sent.push(http2Frame(at === 0 ? frameTypes.headers : frameTypes.continuation, flags, 1, piece));
  }
  return sent;
}

function continuationFlood(random: SeededRandom, target: HostileTarget): Buffer[] {
  const sent = opening(random);
  sent.push(http2Frame(frameTypes.headers, 0, 1, headerBlock(grpcHeaders(random.pick(target.methods).path))));
  const piece = headerBlock([['x', 'x'.repeat(random.below(500))]]);
  const count = random.below(200);
  for (let i = 0; i < count; i++) sent.push(http2Frame(frameTypes.continuation, 0, 1, piece));
  return sent;
}

function rapidReset(random: SeededRandom, target: HostileTarget): Buffer[] {
  const sent = opening(random);
  const { path, message } = random.pick(target.methods);
  const block = headerBlock(grpcHeaders(path));
  const count = random.below(200);
  for (let i = 0; i < count; i++) {
    const streamId = 2 * i + 1;
    sent.push(http2Frame(frameTypes.headers, endHeaders, streamId, block));
    if (random.chance(0.5)) sent.push(http2Frame(frameTypes.data, 0, streamId, frameMessage(message)));
    sent.push(resetFrame(streamId, random.pick([0, 1, 8])));
  }
  return sent;
}

function controlFlood(random: SeededRandom): Buffer[] {
  const flood = random.pick([
    http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8)),
    http2Frame(frameTypes.ping, 1, 0, Buffer.alloc(8)),
    settingsFrame([4, random.below(2 ** 31)]),
    settingsFrame(...Array.from({ length: 50 }, () => [random.below(10), random.uint32()] as const)),
    http2Frame(frameTypes.priority, 0, 1, random.bytes(5)),
    http2Frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1])),
    http2Frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])),
    http2Frame(frameTypes.goaway, 0, 0, Buffer.alloc(8)),
    http2Frame(frameTypes.data, 0, 1),
  ]);
  const sent = opening(random);
  const count = random.below(300);
  for (let i = 0; i < count; i++) sent.push(flood);
  return sent;
}

/** Calls whose replies the client never reads. */
function zeroWindow(random: SeededRandom, target: HostileTarget): Buffer[] {
  const sent = [http2Preface, settingsFrame([4, 0])];
  const count = 1 + random.below(50);
  for (let i = 0; i < count; i++) {
    const { path, message } = random.pick(target.methods);
    sent.push(http2Frame(frameTypes.headers, endHeaders, 2 * i + 1, headerBlock(grpcHeaders(path))));
    sent.push(http2Frame(frameTypes.data, random.below(2), 2 * i + 1, frameMessage(message)));
  }
  return sent;
}

function opening(random: SeededRandom): Buffer[] {
  return random.chance(0.95) ? [http2Preface, settingsFrame()] : [http2Preface];
}

function resetFrame(streamId: number, code: number): Buffer {
  return http2Frame(frameTypes.rstStream, 0, streamId, Buffer.from([0, 0, 0, code]));
}
