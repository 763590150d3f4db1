import { varintSize, writeVarint } from '@tenure/codec';

/** A command as it is written to the log. */
export interface EncodedCommand {
  readonly kind: number;
  readonly payload: Buffer;
  /** Who waits for its outcome, when that is a server that learns it from the log. */
  readonly origin?: Origin;
}

/** Names one proposal of one run of one server. Both are below 2^32 and 2^53: `run` is random. */
export interface Origin {
  readonly run: number;
  readonly sequence: number;
}

export interface EntryHeaders {
  readonly epoch: number;
  readonly timeMs: number;
}

/** The first byte of every entry: the version of this layout. A server that does not know it stops. */
const entryFormat = 1;

/**
 * Headers are named, so that a later version can add one that an old server may skip; a change that an old server
 * must not skip is a new kind of command. Layout: format, count of headers, (name length, name, varint value) each,
 * count of commands, each as (2 x kind, length, payload), or with an origin as (2 x kind + 1, run, sequence, length,
 * payload). All numbers but the format are varints.
 */
const headerNames = { epoch: 'epoch', timeMs: 'time' } as const;

export function encodeEntry(headers: EntryHeaders, commands: readonly EncodedCommand[]): Uint8Array {
  const named: readonly (readonly [string, number])[] = [
    [headerNames.epoch, headers.epoch],
    [headerNames.timeMs, headers.timeMs],
  ];
  let length = 1 + varintSize(named.length) + varintSize(commands.length);
  for (const [name, value] of named) length += 1 + name.length + varintSize(value);
  for (const { kind, payload, origin } of commands) {
    length += varintSize(2 * kind + 1) + varintSize(payload.length) + payload.length;
    if (origin !== undefined) length += varintSize(origin.run) + varintSize(origin.sequence);
  }
  const bytes = Buffer.allocUnsafe(length);
  bytes[0] = entryFormat;
  let at = writeVarint(bytes, 1, named.length);
  for (const [name, value] of named) {
    bytes[at++] = name.length;
    at += bytes.write(name, at, 'latin1');
    at = writeVarint(bytes, at, value);
  }
  at = writeVarint(bytes, at, commands.length);
  for (const { kind, payload, origin } of commands) {
    at = writeVarint(bytes, at, origin === undefined ? 2 * kind : 2 * kind + 1);
    if (origin !== undefined) at = writeVarint(bytes, writeVarint(bytes, at, origin.run), origin.sequence);
    at = writeVarint(bytes, at, payload.length);
    bytes.set(payload, at);
    at += payload.length;
  }
  return bytes;
}

/**
 * Reads what encodeEntry wrote. Throws on anything else: the engine has checked the bytes, so this is another
 * version's entry.
 */
export function decodeEntry(bytes: Uint8Array): { headers: EntryHeaders; commands: EncodedCommand[] } {
  if (bytes[0] !== entryFormat) {
    throw new Error(
      `the log holds an entry of format ${bytes[0]}, this version reads format ${entryFormat}: upgrade Tenure`,
    );
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const cursor = { at: 1 };
  const values = new Map<string, number>();
  for (let left = decodeVarint(buffer, cursor); left > 0; left -= 1) {
    const nameLength = buffer[cursor.at++] ?? 0;
    const name = buffer.toString('latin1', cursor.at, cursor.at + nameLength);
    cursor.at += nameLength;
    values.set(name, decodeVarint(buffer, cursor));
  }
  const commands: EncodedCommand[] = [];
  for (let left = decodeVarint(buffer, cursor); left > 0; left -= 1) {
    const tag = decodeVarint(buffer, cursor);
    const origin =
      tag % 2 === 0 ? undefined : { run: decodeVarint(buffer, cursor), sequence: decodeVarint(buffer, cursor) };
    const kind = Math.floor(tag / 2);
    const length = decodeVarint(buffer, cursor);
    if (cursor.at + length > buffer.length) throw new Error('an entry of the log ends within a command');
    const payload = buffer.subarray(cursor.at, cursor.at + length);
    commands.push(origin === undefined ? { kind, payload } : { kind, payload, origin });
    cursor.at += length;
  }
  const epoch = values.get(headerNames.epoch);
  const timeMs = values.get(headerNames.timeMs);
  if (epoch === undefined || timeMs === undefined) throw new Error('an entry of the log has no epoch or no time');
  return { headers: { epoch, timeMs }, commands };
}

/** Reads a varint at the cursor and moves it. Throws if the bytes end first or the number is above 2^53 - 1. */
function decodeVarint(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0;
  let factor = 1;
  for (;;) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) throw new Error('an entry of the log ends within a number');
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) break;
    factor *= 0x80;
  }
  if (!Number.isSafeInteger(value)) throw new Error('an entry of the log holds a number above 2^53 - 1');
  return value;
}
