import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { jsonText } from './json-text.ts';
import { plainJson } from './plain-json.ts';

export type OutputFormat = 'simple' | 'json';

/** Writes results to stdout, in the format that was asked for, waiting when the reader is slow. */
export class Output {
  readonly #stream: Writable;
  readonly #format: OutputFormat;

  constructor(stream: Writable, format: OutputFormat) {
    this.#stream = stream;
    this.#format = format;
  }

  /** The whole reply as one line of JSON, or else what `simple` makes of it: lines of text or raw bytes. */
  async reply<T extends DescMessage>(
    schema: T,
    message: MessageShape<T>,
    simple: () => readonly (string | Uint8Array)[],
  ): Promise<void> {
    await this.lines(this.#format === 'json' ? [jsonText(schema, message)] : simple());
  }

  /** The same for what is no message of the API. */
  async value(value: unknown, simple: () => readonly string[]): Promise<void> {
    await this.lines(this.#format === 'json' ? [plainJson(value)] : simple());
  }

  /** Bytes go out as they are: what a key holds is not ours to escape. */
  async lines(lines: readonly (string | Uint8Array)[]): Promise<void> {
    const newline = Buffer.from('\n');
    const bytes = Buffer.concat(
      lines.flatMap((line) => [typeof line === 'string' ? Buffer.from(line) : line, newline]),
    );
    if (!this.#stream.write(bytes)) await once(this.#stream, 'drain');
  }
}
