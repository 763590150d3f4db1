import { CliError } from './cli-error.ts';

export interface RangeOptions {
  readonly prefix?: boolean;
  readonly fromKey?: boolean;
}

export interface KeyRange {
  readonly key: Uint8Array;
  /** Empty: the one key. */
  readonly rangeEnd: Uint8Array;
}

const everything = Uint8Array.of(0);

/** The range of keys that KEY, RANGE_END, --prefix and --from-key of a command name, in the form of etcd's API. */
export function keyRange(key: string, rangeEnd: string | undefined, options: RangeOptions): KeyRange {
  const wide = [options.prefix === true, options.fromKey === true, rangeEnd !== undefined].filter(Boolean).length;
  if (wide > 1) throw new CliError('usage', 'RANGE_END, --prefix and --from-key exclude each other');
  const start = Buffer.from(key);
  // The empty key is refused by the server; a range that begins at its successor holds the same keys.
  const from = start.length === 0 && wide > 0 ? everything : start;
  if (options.fromKey === true) return { key: from, rangeEnd: everything };
  if (options.prefix === true) return { key: from, rangeEnd: start.length === 0 ? everything : prefixEnd(start) };
  return { key: from, rangeEnd: Buffer.from(rangeEnd ?? '') };
}

// The first key after all keys with this prefix. If there is none (all bytes are 0xff), the range has no end.
function prefixEnd(prefix: Buffer): Uint8Array {
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last < 0) return everything;
  const end = Buffer.from(prefix.subarray(0, last + 1));
  end[last] = (end[last] ?? 0) + 1;
  return end;
}
