import type { EncodedField } from '../hpack/hpack-encoder.ts';

let blocks = 0;

/**
 * A list of headers to be sent. One that is sent often is created once: each connection remembers its encoded bytes in
 * the slot of this number for as long as they mean the same.
 */
export class HeaderBlock {
  readonly fields: readonly EncodedField[];
  readonly slot: number;

  private constructor(fields: readonly EncodedField[], slot: number) {
    this.fields = fields;
    this.slot = slot;
  }

  /** For a list that is sent once. */
  static once(fields: readonly EncodedField[]): HeaderBlock {
    return new HeaderBlock(fields, -1);
  }

  /** For a list that every connection sends often. Its fields enter the dynamic table. */
  static frequent(fields: readonly EncodedField[]): HeaderBlock {
    blocks += 1;
    return new HeaderBlock(fields, blocks - 1);
  }
}
