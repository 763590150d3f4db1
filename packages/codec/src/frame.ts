import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { checkMessage } from './check-message.ts';
import { DecodeError } from './decode-error.ts';

/**
 * gRPC puts a flag and a length before each message. Encoders reserve headroom for them, so that a reply is not copied
 * to be framed.
 */
export const frameHeadroomBytes = 5;

/** A buffer for a message of `size` bytes after its headroom, which is not cleared. */
export function allocateFrame(size: number): Buffer {
  return Buffer.allocUnsafe(frameHeadroomBytes + size);
}

/** A generated message, or its initial values, after its headroom. */
export function encodeFramed<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Buffer {
  const body = toBinary(schema, create(schema, message));
  const out = allocateFrame(body.length);
  out.set(body, frameHeadroomBytes);
  return out;
}

/**
 * Reads a generated message; unknown fields are dropped. Its `bytes` fields share memory with `bytes`: a caller that
 * keeps one longer than the request copies it. Throws only DecodeError.
 *
 * protobuf-es alone is more lenient than etcd with bytes that no encoder writes: it does not check the wire type of a
 * known field, and lets the last field of a nested message reach past the end of that message. So the bytes are checked
 * first.
 */
export function decodeMessage<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  checkMessage(schema, bytes);
  return decodeChecked(schema, bytes);
}

/**
 * Fields in one request that protobuf-es reads. It takes far longer for each than the hand-written codecs, and a
 * request may have several hundred thousand unknown ones.
 */
const maxRequestFields = 65_536;

/** Like decodeMessage, for requests of clients: it also throws for more fields than any valid request needs. */
export function decodeRequest<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  checkMessage(schema, bytes, maxRequestFields);
  return decodeChecked(schema, bytes);
}

function decodeChecked<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (cause) {
    throw new DecodeError('Malformed', { cause });
  }
}
