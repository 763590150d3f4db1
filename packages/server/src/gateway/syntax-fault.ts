/** The bytes are not JSON. The text is that of Go's JSON package. */
export class SyntaxFault extends Error {
  constructor(text: string) {
    super(text);
    this.name = 'SyntaxFault';
  }
}

const namedControls: Readonly<Record<number, string>> = {
  0x07: String.raw`\a`,
  0x08: String.raw`\b`,
  0x09: String.raw`\t`,
  0x0a: String.raw`\n`,
  0x0b: String.raw`\v`,
  0x0c: String.raw`\f`,
  0x0d: String.raw`\r`,
  0x27: String.raw`\'`,
  0x5c: String.raw`\\`,
};

/** A byte as Go quotes it in an error: as the character with that number. */
export function quoteByte(byte: number): string {
  const named = namedControls[byte];
  if (named !== undefined) return `'${named}'`;
  const isPrintable = (byte >= 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  if (isPrintable) return `'${String.fromCharCode(byte)}'`;
  const digits = byte.toString(16).padStart(byte < 0x80 ? 2 : 4, '0');
  return byte < 0x80 ? String.raw`'\x${digits}'` : String.raw`'\u${digits}'`;
}
