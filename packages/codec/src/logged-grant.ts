import { WireReader } from './wire-reader.ts';
import {
  bigIntFieldSize,
  numberFieldSize,
  utf8FieldSize,
  writeBigIntField,
  writeNumberField,
  writeUtf8Field,
} from './wire-write.ts';

/** tenure.log's LeaseGrant: a granted lease as the log holds it. */
export interface LoggedGrant {
  /** Never 0n. */
  readonly id: bigint;
  readonly ttlMs: number;
  readonly label: string;
}

const fields = [1, 2, 3];

/**
 * Without headroom: the message is for the log. Each grant writes one, and a restart reads all of them. Throws a
 * RangeError for a TTL that is no safe integer: a longer varint could not be read again.
 */
export function encodeLoggedGrant({ id, ttlMs, label }: LoggedGrant): Buffer {
  if (!Number.isSafeInteger(ttlMs)) throw new RangeError(`a TTL of ${ttlMs} ms does not fit the log`);
  const out = Buffer.allocUnsafe(bigIntFieldSize(1, id) + numberFieldSize(1, ttlMs) + utf8FieldSize(1, label));
  const at = writeNumberField(out, writeBigIntField(out, 0, 0x08, id), 0x10, ttlMs);
  writeUtf8Field(out, at, 0x1a, label);
  return out;
}

/** Throws DecodeError. */
export function decodeLoggedGrant(bytes: Buffer): LoggedGrant {
  const reader = new WireReader(bytes);
  let id = 0n;
  let ttlMs = 0;
  let label = '';
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === 0x08) id = reader.bigInt64();
    else if (tag === 0x10) ttlMs = reader.int64();
    else if (tag === 0x1a) label = reader.utf8();
    else reader.skipUnknown(tag, fields);
  }
  return { id, ttlMs, label };
}
