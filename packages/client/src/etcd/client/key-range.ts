import { bytesOf } from './key-value.ts';
import type { Bytes } from './key-value.ts';

/** One key, or all keys from it to `end` (which is not among them), or all that begin with it. */
export type KeyRange =
  | Bytes
  | { readonly key: Bytes; readonly end: Bytes }
  | { readonly prefix: Bytes }
  | { readonly from: Bytes };

const lastKey = new Uint8Array([0]);

/** The fields of etcd's messages for a range. */
export function rangeOf(range: KeyRange): { readonly key: Uint8Array; readonly rangeEnd: Uint8Array } {
  if (typeof range === 'string' || range instanceof Uint8Array) {
    return { key: bytesOf(range), rangeEnd: new Uint8Array() };
  }
  if ('prefix' in range) return prefixRange(bytesOf(range.prefix));
  if ('from' in range) return { key: firstKey(bytesOf(range.from)), rangeEnd: lastKey };
  return { key: firstKey(bytesOf(range.key)), rangeEnd: bytesOf(range.end) };
}

/** An empty key is invalid in a request, so the range of all keys begins with a zero byte. */
function firstKey(key: Uint8Array): Uint8Array {
  return key.length === 0 ? lastKey : key;
}

function prefixRange(prefix: Uint8Array): { readonly key: Uint8Array; readonly rangeEnd: Uint8Array } {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  if (length === 0) return { key: firstKey(prefix), rangeEnd: lastKey };
  const rangeEnd = prefix.slice(0, length);
  rangeEnd[length - 1]!++;
  return { key: prefix, rangeEnd };
}
