import { WireReader } from './wire-reader.ts';
import {
  delimitedSize,
  numberFieldSize,
  utf8FieldSize,
  writeDelimiter,
  writeNumberField,
  writeUtf8Field,
} from './wire-write.ts';

/** tenure.log's Requested: a command as the log holds it, with the client that asked for it. */
export interface RequestedCommand {
  readonly user: string;
  /** A safe integer; negative for a client without a valid identity. */
  readonly authRevision: number;
  readonly kind: number;
  readonly payload: Buffer;
}

const fields = [1, 2, 3, 4];
const noBytes = Buffer.alloc(0);

/** Without headroom: the message is for the log. While authentication is enabled, every write has one. */
export function encodeRequestedCommand({ user, authRevision, kind, payload }: RequestedCommand): Buffer {
  const payloadSize = payload.length === 0 ? 0 : delimitedSize(1, payload.length);
  const numbersSize = numberFieldSize(1, authRevision) + numberFieldSize(1, kind);
  const out = Buffer.allocUnsafe(utf8FieldSize(1, user) + numbersSize + payloadSize);
  let at = writeUtf8Field(out, 0, 0x0a, user);
  at = writeNumberField(out, at, 0x10, authRevision);
  at = writeNumberField(out, at, 0x18, kind);
  if (payload.length > 0) payload.copy(out, writeDelimiter(out, at, 0x22, payload.length));
  return out;
}

/** Its payload shares memory with `bytes`. Throws DecodeError. */
export function decodeRequestedCommand(bytes: Buffer): RequestedCommand {
  const reader = new WireReader(bytes);
  let user = '';
  let authRevision = 0;
  let kind = 0;
  let payload: Buffer = noBytes;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        user = reader.utf8();
        break;
      case 0x10:
        authRevision = reader.int64();
        break;
      case 0x18:
        kind = reader.int64();
        break;
      case 0x22: {
        const outer = reader.enter();
        payload = bytes.subarray(reader.at, reader.end);
        reader.leave(outer);
        break;
      }
      default:
        reader.skipUnknown(tag, fields);
    }
  }
  return { user, authRevision, kind, payload };
}
