import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http2';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HpackEncoder, type EncodedField } from './hpack-encoder.ts';
import { fieldsOf, generousDecoder } from './testing/decoded-block.ts';
import type { Field } from './testing/hpack-js-peer.ts';

const frameHeaderBytes = 9;
const headersType = 1;
const settingsType = 4;
/** RST_STREAM and GOAWAY. */
const refusalTypes = [3, 7];
const ackFlag = 1;
/** END_STREAM and END_HEADERS. */
const wholeRequestFlags = 5;
const headerTableSizeSetting = 1;
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(frameHeaderBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

async function* framesOf(socket: Socket): AsyncGenerator<Frame, undefined> {
  let waiting = Buffer.alloc(0);
  for await (const chunk of socket) {
    waiting = Buffer.concat([waiting, chunk as Buffer]);
    while (waiting.length >= frameHeaderBytes && waiting.length >= frameHeaderBytes + waiting.readUIntBE(0, 3)) {
      const end = frameHeaderBytes + waiting.readUIntBE(0, 3);
      yield { type: waiting[3] ?? 0, payload: waiting.subarray(frameHeaderBytes, end) };
      waiting = waiting.subarray(end);
    }
  }
}

/** The next frame with this type. A refusal of the server fails the test. */
async function next(frames: AsyncGenerator<Frame, undefined>, type: number): Promise<Buffer> {
  for (;;) {
    const { value: found } = await frames.next();
    if (found === undefined || refusalTypes.includes(found.type)) expect.fail('the server refused what it read');
    if (found.type === type) return found.payload;
  }
}

/** The server's table, smaller than the initial one: the first block after its settings must say so. */
const serverTableBytes = 200;

describe('nghttp2, in the server of Node', () => {
  const received: IncomingHttpHeaders[] = [];
  const server = createServer({ settings: { headerTableSize: serverTableBytes } });
  let socket: Socket;

  beforeAll(async () => {
    server.on('stream', (stream, headers) => {
      received.push(headers);
      const { ':path': path = '' } = headers;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'x-path': path, 'grpc-status': '0' });
      stream.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  });

  afterAll(async () => {
    socket.destroy();
    server.close();
    await once(server, 'close');
  });

  test('reads what the encoder writes, and writes what the decoder reads, in tables that evict', async () => {
    const clientSettings = Buffer.alloc(6);
    clientSettings.writeUInt16BE(headerTableSizeSetting, 0);
    clientSettings.writeUInt32BE(100, 2);
    socket.write(Buffer.concat([Buffer.from(preface), frame(settingsType, 0, 0, clientSettings)]));
    const frames = framesOf(socket);
    // The settings of the server, and its acknowledgement of ours.
    await next(frames, settingsType);
    socket.write(frame(settingsType, ackFlag, 0, Buffer.alloc(0)));
    await next(frames, settingsType);
    const encoder = new HpackEncoder();
    const decoder = generousDecoder();
    encoder.setPeerTableBytes(serverTableBytes);
    decoder.setMaxTableBytes(100);
    for (let call = 0; call < 40; call++) {
      const fields: EncodedField[] = [
        [':method', 'POST'],
        [':scheme', 'http'],
        [':authority', '127.0.0.1'],
        [':path', `/service/Method${call % 3}`],
        ['te', 'trailers'],
        ['authorization', `secret ${call}`, 'never'],
        ['x-value', 'v'.repeat(call), call % 2 === 0 ? 'plain' : 'index'],
      ];
      socket.write(frame(headersType, wholeRequestFlags, 2 * call + 1, encoder.encode(fields)));
      const response = await next(frames, headersType);
      expect(received.at(-1)).toMatchObject(Object.fromEntries(fields));
      const decoded: readonly Field[] = fieldsOf(decoder, response);
      expect(Object.fromEntries(decoded)).toMatchObject({
        ':status': '200',
        'x-path': `/service/Method${call % 3}`,
        'grpc-status': '0',
      });
    }
  });
});
