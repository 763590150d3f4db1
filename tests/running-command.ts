import { PassThrough } from 'node:stream';
import { main } from '@tenure/cli';

/** The result of a command. */
export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The tenure command, without `serve`, inside this process: its output can be awaited. */
export class RunningCommand {
  readonly done: Promise<CommandResult>;
  #out = '';
  #err = '';
  #wake: () => void = () => undefined;

  constructor(argv: readonly string[], options: { stdin?: string; env?: Record<string, string> } = {}) {
    const stdin = new PassThrough();
    stdin.end(options.stdin ?? '');
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    stdout.on('data', (chunk: Buffer) => {
      this.#out += chunk.toString();
      this.#wake();
    });
    stderr.on('data', (chunk: Buffer) => (this.#err += chunk.toString()));
    this.done = main(argv, { stdin, stdout, stderr, env: options.env ?? {} }).then((code) => {
      this.#wake();
      return { code, out: this.#out, err: this.#err };
    });
  }

  /** Resolves when the output contains `text`; rejects when the command ends without it. */
  async output(text: string): Promise<string> {
    let ended = false;
    void this.done.then(() => (ended = true));
    while (!this.#out.includes(text)) {
      if (ended) throw new Error(`it ended without ${text}: ${this.#out}${this.#err}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#out;
  }
}

/** Runs a command to its end. */
export function runCommand(
  argv: readonly string[],
  options?: { stdin?: string; env?: Record<string, string> },
): Promise<CommandResult> {
  return new RunningCommand(argv, options).done;
}
