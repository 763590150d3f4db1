import type { mvccpb } from '@tenure/protocol';

/** The input type of keys and values. Text is encoded as UTF-8. */
export type Bytes = string | Uint8Array;

/** One key as it was at one revision. */
export class KeyValue {
  readonly keyBytes: Uint8Array;
  readonly valueBytes: Uint8Array;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  /** The number of puts since it was created. */
  readonly version: bigint;
  /** The lease that it is attached to; 0 for none. */
  readonly lease: bigint;

  constructor(message: mvccpb.KeyValue) {
    this.keyBytes = plain(message.key);
    this.valueBytes = plain(message.value);
    this.createRevision = message.createRevision;
    this.modRevision = message.modRevision;
    this.version = message.version;
    this.lease = message.lease;
  }

  /** The value as text, decoded from UTF-8. */
  get key(): string {
    return decoder.decode(this.keyBytes);
  }

  get value(): string {
    return decoder.decode(this.valueBytes);
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** The same bytes as a plain Uint8Array, since Node's Buffer prints and compares differently. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function bytesOf(value: Bytes): Uint8Array {
  return typeof value === 'string' ? encoder.encode(value) : value;
}
