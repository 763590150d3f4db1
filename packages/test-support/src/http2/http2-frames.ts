/** HTTP/2 frames as bytes, for clients that send what no library allows. */

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 1;
export const endHeaders = 4;

export const http2Preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export function http2Frame(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length & 0xffffff, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** A SETTINGS frame of (identifier, value) pairs. */
export function settingsFrame(...entries: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.alloc(6 * entries.length);
  entries.forEach(([identifier, value], i) => {
    payload.writeUInt16BE(identifier, 6 * i);
    payload.writeUInt32BE(value >>> 0, 6 * i + 2);
  });
  return http2Frame(frameTypes.settings, 0, 0, payload);
}

/** A header block in which every field is a literal, not indexed and not compressed. */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), hpackString(name), hpackString(value)]));
}

/** The headers of a gRPC call. */
export function grpcHeaders(path: string, more: readonly (readonly [string, string])[] = []): [string, string][] {
  const fields: [string, string][] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ];
  for (const [name, value] of more) fields.push([name, value]);
  return fields;
}

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const length: number[] = [Math.min(bytes.length, 127)];
  if (bytes.length >= 127) {
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}
