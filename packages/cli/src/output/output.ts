import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { jsonText } from './json-text.ts';
import { plainJson } from './plain-json.ts';

export type OutputFormat = 'simple' | 'json';

/** Writes results to stdout in the requested format, and waits for a slow reader. */
export class Output {
  readonly #stream: Writable;
  readonly #format: OutputFormat;

  constructor(stream: Writable, format: OutputFormat) {
    this.#stream = stream;
    this.#format = format;
  }

  /** The whole reply as one line of JSON, or the lines of text or raw bytes that `simple` returns. */
  async reply<T extends DescMessage>(
    schema: T,
    message: MessageShape<T>,
    simple: () => readonly (string | Uint8Array)[],
  ): Promise<void> {
    await this.lines(this.#format === 'json' ? [jsonText(schema, message)] : simple());
  }

  /** The same for a value that is not a message of the API. */
  async value(value: unknown, simple: () => readonly string[]): Promise<void> {
    await this.lines(this.#format === 'json' ? [plainJson(value)] : simple());
  }

  /** Bytes are written unescaped, so that a value can be piped. */
  async lines(lines: readonly (string | Uint8Array)[]): Promise<void> {
    const newline = Buffer.from('\n');
    const bytes = Buffer.concat(
      lines.flatMap((line) => [typeof line === 'string' ? Buffer.from(line) : line, newline]),
    );
    if (!this.#stream.write(bytes)) await once(this.#stream, 'drain');
  }
}
