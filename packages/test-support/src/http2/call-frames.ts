import { endHeaders, endStream, frameTypes, grpcHeaders, headerBlock, http2Frame } from './http2-frames.ts';
import { frameMessage } from './raw-call.ts';

/** HEADERS of a call whose messages follow. */
export function openFrame(streamId: number, path: string): Buffer {
  return http2Frame(frameTypes.headers, endHeaders, streamId, headerBlock(grpcHeaders(path)));
}

/** A call with its one message. */
export function callFrames(streamId: number, path: string, message: Buffer = Buffer.from('x')): Buffer {
  const data = http2Frame(frameTypes.data, endStream, streamId, frameMessage(message));
  return Buffer.concat([openFrame(streamId, path), data]);
}

export function dataFrame(streamId: number, payload: Buffer, flags = 0): Buffer {
  return http2Frame(frameTypes.data, flags, streamId, payload);
}

export function windowUpdate(streamId: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return http2Frame(frameTypes.windowUpdate, 0, streamId, payload);
}

export function repeat(count: number, frame: (index: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => frame(index)));
}
