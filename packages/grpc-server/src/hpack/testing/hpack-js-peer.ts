import hpack from 'hpack.js';
import type { EncodedField, IndexingMode } from '../hpack-encoder.ts';

export type Field = readonly [name: string, value: string];

/** One end of a connection that compresses with hpack.js. */
export class HpackJsPeer {
  readonly #compressor;
  readonly #decompressor;

  constructor(tableBytes: number) {
    this.#compressor = hpack.compressor.create({ table: { maxSize: tableBytes } });
    this.#decompressor = hpack.decompressor.create({ table: { maxSize: tableBytes } });
  }

  encode(fields: readonly EncodedField[], huffman: boolean): Buffer {
    this.#compressor.write(fields.map(([name, value, mode]) => ({ name, value, huffman, ...flags(mode) })));
    const parts: Buffer[] = [];
    for (let part = this.#compressor.read(); part !== null; part = this.#compressor.read()) parts.push(part);
    return Buffer.concat(parts);
  }

  decode(block: Buffer): Field[] {
    this.#decompressor.write(block);
    this.#decompressor.execute();
    const fields: Field[] = [];
    for (let field = this.#decompressor.read(); field !== null; field = this.#decompressor.read()) {
      fields.push([field.name, field.value]);
    }
    return fields;
  }
}

function flags(mode: IndexingMode = 'index'): { readonly incremental: boolean; readonly neverIndex: boolean } {
  return { incremental: mode === 'index', neverIndex: mode === 'never' };
}
