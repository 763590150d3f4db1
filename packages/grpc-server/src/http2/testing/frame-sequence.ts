import { endHeaders, endStream, frameTypes, headerBlock, http2Frame, type SeededRandom } from '@tenure/test-support';

const padded = 8;
const priority = 0x20;

type Pairs = readonly (readonly [string, string])[];

/** The frames of one client, valid but for at most a few, and what was done wrong: the name of each broken step. */
export interface FrameSequence {
  readonly frames: readonly Buffer[];
  readonly steps: readonly string[];
}

/** A client that knows which of its streams are open. */
class SequenceWriter {
  readonly random: SeededRandom;
  readonly frames: Buffer[] = [];
  readonly open: number[] = [];
  readonly ended: number[] = [];
  /** Stream 1 is that of the test. */
  nextId = 3;

  constructor(random: SeededRandom) {
    this.random = random;
  }

  write(type: number, flags: number, id: number, payload: Buffer = Buffer.alloc(0)): void {
    this.frames.push(http2Frame(type, flags, id, payload));
  }

  request(more: Pairs = [], flags = 0, without = ''): number {
    const id = this.nextId;
    this.nextId += 2;
    const pairs: [string, string][] = [
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', '/'],
      [':authority', 'x'],
    ];
    for (const [name, value] of more) pairs.push([name, value]);
    const block = headerBlock(pairs.filter(([name]) => name !== without));
    this.write(frameTypes.headers, endHeaders | flags, id, block);
    this.close(id);
    if ((flags & endStream) === 0) this.open.push(id);
    else this.ended.push(id);
    return id;
  }

  /** A stream that is open; there is one afterwards. */
  openId(): number {
    return this.open.length === 0 ? this.request() : this.random.pick(this.open);
  }

  endedId(): number {
    return this.ended.length === 0 ? this.request([], endStream) : this.random.pick(this.ended);
  }

  close(id: number): void {
    const at = this.open.indexOf(id);
    if (at >= 0) this.open.splice(at, 1);
  }

  end(id: number): void {
    this.close(id);
    this.ended.push(id);
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function settings(identifier: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, identifier]), uint32(value)]);
}

type Step = (writer: SequenceWriter) => void;

const { data, headers, rstStream, ping, goaway, windowUpdate, continuation, pushPromise } = frameTypes;

const valid: Readonly<Record<string, Step>> = {
  request: (w) => w.request(),
  'whole request': (w) => w.request([['x-a', 'b']], endStream),
  data: (w) => w.write(data, 0, w.openId(), w.random.bytes(w.random.below(50))),
  'padded data': (w) => w.write(data, padded, w.openId(), Buffer.from([2, 1, 1, 0, 0])),
  'last data': (w) => {
    const id = w.openId();
    w.write(data, endStream, id, w.random.bytes(w.random.below(50)));
    w.end(id);
  },
  'request in two blocks': (w) => {
    const pairs: Pairs = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/two'],
      [':authority', 'x'],
    ];
    const block = headerBlock(pairs);
    w.write(headers, endStream, w.nextId, block.subarray(0, 9));
    w.write(continuation, endHeaders, w.nextId, block.subarray(9));
    w.ended.push(w.nextId);
    w.nextId += 2;
  },
  trailers: (w) => {
    const id = w.openId();
    w.write(headers, endHeaders | endStream, id, headerBlock([['x-trailer', '1']]));
    w.end(id);
  },
  reset: (w) => {
    const id = w.openId();
    w.write(rstStream, 0, id, uint32(w.random.pick([0, 8, 5])));
    w.close(id);
  },
  'window of a stream': (w) => w.write(windowUpdate, 0, w.openId(), uint32(w.random.pick([1, 1000]))),
  'window of the connection': (w) => w.write(windowUpdate, 0, 0, uint32(1000)),
  settings: (w) => w.write(frameTypes.settings, 0, 0, settings(w.random.pick([1, 4, 6, 99]), w.random.below(70_000))),
  'settings of frames': (w) => w.write(frameTypes.settings, 0, 0, settings(5, w.random.pick([16_384, 2 ** 24 - 1]))),
  ping: (w) => w.write(ping, 0, 0, w.random.bytes(8)),
  priority: (w) => w.write(frameTypes.priority, 0, w.openId(), Buffer.from([0, 0, 0, 0, 9])),
  'unknown frame': (w) => w.write(w.random.pick([11, 77, 255]), w.random.below(256), w.openId(), w.random.bytes(7)),
};

function malformed(more: Pairs, without = ''): Step {
  return (w) => w.close(w.request(more, w.random.pick([0, endStream]), without));
}

const broken: Readonly<Record<string, Step>> = {
  'headers of an even stream': (w) => w.write(headers, endHeaders | endStream, 2, headerBlock([[':method', 'GET']])),
  'headers without a stream': (w) => w.write(headers, endHeaders | endStream, 0, headerBlock([[':method', 'GET']])),
  'data without a stream': (w) => w.write(data, 0, 0, Buffer.alloc(3)),
  'data on an idle stream': (w) => w.write(data, 0, w.nextId + 10, Buffer.alloc(3)),
  'data after the end': (w) => w.write(data, 0, w.endedId(), Buffer.alloc(3)),
  'reset of an idle stream': (w) => w.write(rstStream, 0, w.nextId + 10, uint32(8)),
  'reset without a stream': (w) => w.write(rstStream, 0, 0, uint32(8)),
  'reset of a wrong size': (w) => w.write(rstStream, 0, w.openId(), Buffer.alloc(3)),
  'window of an idle stream': (w) => w.write(windowUpdate, 0, w.nextId + 10, uint32(1)),
  'window by nothing': (w) => w.write(windowUpdate, 0, 0, uint32(0)),
  'window of a stream by nothing': (w) => w.write(windowUpdate, 0, w.openId(), uint32(0)),
  'window of a wrong size': (w) => w.write(windowUpdate, 0, 0, Buffer.alloc(3)),
  'window that is too large': (w) => w.write(windowUpdate, 0, 0, uint32(2 ** 31 - 1)),
  'window of a stream that is too large': (w) => w.write(windowUpdate, 0, w.openId(), uint32(2 ** 31 - 1)),
  'settings of a wrong size': (w) => w.write(frameTypes.settings, 0, 0, Buffer.alloc(5)),
  'settings on a stream': (w) => w.write(frameTypes.settings, 0, w.openId(), settings(3, 1)),
  'an acknowledgement with settings': (w) => w.write(frameTypes.settings, 1, 0, settings(3, 1)),
  'initial window that is too large': (w) => w.write(frameTypes.settings, 0, 0, settings(4, 2 ** 31)),
  'frame size that is too small': (w) => w.write(frameTypes.settings, 0, 0, settings(5, 16_383)),
  'frame size that is too large': (w) => w.write(frameTypes.settings, 0, 0, settings(5, 2 ** 24)),
  'push that is neither on nor off': (w) => w.write(frameTypes.settings, 0, 0, settings(2, 2)),
  'ping of a wrong size': (w) => w.write(ping, 0, 0, Buffer.alloc(7)),
  'ping on a stream': (w) => w.write(ping, 0, 1, Buffer.alloc(8)),
  'goaway on a stream': (w) => w.write(goaway, 0, 1, Buffer.alloc(8)),
  'goaway of a wrong size': (w) => w.write(goaway, 0, 0, Buffer.alloc(7)),
  'priority of a wrong size': (w) => w.write(frameTypes.priority, 0, w.openId(), Buffer.alloc(4)),
  'priority without a stream': (w) => w.write(frameTypes.priority, 0, 0, Buffer.alloc(5)),
  push: (w) => w.write(pushPromise, endHeaders, w.openId(), Buffer.from([0, 0, 0, 2])),
  'continuation of nothing': (w) => w.write(continuation, endHeaders, w.openId(), Buffer.alloc(0)),
  'frame within a block': (w) => {
    w.write(headers, 0, w.nextId, Buffer.alloc(0));
    w.write(ping, 0, 0, Buffer.alloc(8));
  },
  'continuation of another stream': (w) => {
    w.write(headers, 0, w.nextId, Buffer.alloc(0));
    w.write(continuation, endHeaders, w.nextId + 2, Buffer.alloc(0));
  },
  'too much padding of data': (w) => w.write(data, padded, w.openId(), Buffer.from([9, 1, 1])),
  'too much padding of headers': (w) => w.write(headers, padded | endHeaders, w.nextId, Buffer.from([9, 1, 1])),
  'headers without their priority': (w) => w.write(headers, priority | endHeaders, w.nextId, Buffer.from([0, 0])),
  'an index of no table': (w) => w.write(headers, endHeaders | endStream, w.nextId, Buffer.from([0xff, 0x50])),
  'the index zero': (w) => w.write(headers, endHeaders | endStream, w.nextId, Buffer.from([0x80])),
  'a table that is too large': (w) => w.write(headers, endHeaders, w.nextId, Buffer.from([0x3f, 0xff, 0xff, 0x03])),
  'a string that ends too early': (w) => w.write(headers, endHeaders, w.nextId, Buffer.from([0, 9, 0x61])),
  'a frame that is too large': (w) => w.write(data, 0, w.openId(), Buffer.alloc(16_385)),
  'headers of an earlier stream': (w) => {
    w.nextId += 4;
    w.request([], endStream);
    w.write(headers, endHeaders | endStream, w.nextId - 4, headerBlock([[':method', 'GET']]));
  },
  'trailers without an end': (w) => w.write(headers, endHeaders, w.openId(), headerBlock([['x-trailer', '1']])),
  'trailers with a pseudo-header': (w) => {
    const id = w.openId();
    w.write(headers, endHeaders | endStream, id, headerBlock([[':path', '/']]));
    w.close(id);
  },
  'upper case': malformed([['X-Upper', '1']]),
  'no method': malformed([], ':method'),
  'no scheme': malformed([], ':scheme'),
  'no path': malformed([], ':path'),
  'a path without a slash': malformed([[':path', 'x']], ':path'),
  'a pseudo-header twice': malformed([[':path', '/']]),
  'an unknown pseudo-header': malformed([[':other', '/']]),
  'a late pseudo-header': malformed(
    [
      ['x', 'y'],
      [':path', '/'],
    ],
    ':path',
  ),
  'a connection header': malformed([['connection', 'close']]),
  'a te of another kind': malformed([['te', 'gzip']]),
  'a line feed': malformed([['x', 'a\nb']]),
  'a zero byte': malformed([['x', 'a\0b']]),
  'no name': malformed([['', 'b']]),
  'a length that is no number': malformed([['content-length', 'x']]),
  'a length that is not reached': (w) => w.close(w.request([['content-length', '5']], endStream)),
  'a length that is exceeded': (w) => {
    const id = w.request([['content-length', '5']]);
    w.write(data, endStream, id, Buffer.alloc(6));
    w.close(id);
  },
  'a length that the data does not reach': (w) => {
    const id = w.request([['content-length', '5']]);
    w.write(data, endStream, id, Buffer.alloc(4));
    w.close(id);
  },
};

export const brokenSteps: readonly string[] = Object.keys(broken);

/** A sequence of valid steps with one broken step, or none, at any place in it. */
export function frameSequence(random: SeededRandom, brokenStep: string | undefined): FrameSequence {
  const writer = new SequenceWriter(random);
  const steps = Array.from({ length: random.below(10) }, () => random.pick(Object.keys(valid)));
  if (brokenStep !== undefined) steps.splice(random.below(steps.length + 1), 0, brokenStep);
  for (const step of steps) (valid[step] ?? broken[step])?.(writer);
  return { frames: writer.frames, steps };
}
