declare module 'hpack.js' {
  interface Header {
    readonly name: string;
    readonly value: string;
    readonly neverIndex?: boolean;
    readonly incremental?: boolean;
    readonly huffman?: boolean;
  }
  interface Options {
    readonly table: { readonly maxSize: number };
  }
  const hpack: {
    readonly compressor: {
      create(options: Options): { write(headers: readonly Header[]): void; read(): Buffer | null };
    };
    readonly decompressor: {
      create(options: Options): { write(block: Buffer): void; execute(): void; read(): Header | null };
    };
  };
  export default hpack;
}
