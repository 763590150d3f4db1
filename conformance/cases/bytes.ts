/** Keys and values are bytes; cases write them as text, one character per byte. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, 'latin1'));
}

export function textOf(value: Uint8Array): string {
  return Buffer.from(value).toString('latin1');
}

/** The smallest key that is greater than all keys with this prefix. */
export function prefixEnd(prefix: Uint8Array): Uint8Array<ArrayBuffer> {
  const end = Uint8Array.from(prefix);
  for (let index = end.length - 1; index >= 0; index -= 1) {
    const byte = end[index] ?? 0;
    if (byte < 0xff) {
      end[index] = byte + 1;
      return end.slice(0, index + 1);
    }
  }
  return bytes('\0');
}
