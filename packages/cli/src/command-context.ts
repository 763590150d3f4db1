import type { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { EtcdClient } from 'tenure/etcd';
import { CliError } from './cli-error.ts';
import { connectionOptions } from './connection-options.ts';
import { explainFailure } from './etcd-failure.ts';
import { Output, type OutputFormat } from './output/output.ts';

/** What a command may touch of the process. */
export interface CommandIo {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What a command that talks to a server works with. */
export interface ClientSession {
  readonly client: EtcdClient;
  readonly output: Output;
}

/** The options that every command of the client takes, and what is made of them. */
export class CommandContext {
  readonly io: CommandIo;
  /** Of the whole command, if it ends well. */
  exitCode = 0;

  constructor(io: CommandIo) {
    this.io = io;
  }

  /**
   * Runs `action` with a client as the options say, and closes it however it ended. What the library throws becomes a
   * CliError.
   */
  async withClient(command: Command, action: (session: ClientSession) => Promise<void>): Promise<void> {
    const output = this.output(command);
    const options = connectionOptions(command, this.io.env);
    try {
      await using client = new EtcdClient(options);
      await action({ client, output });
    } catch (error) {
      throw explainFailure(error, options.timeoutMs);
    }
  }

  /** Where results go, in the format that the options ask for. */
  output(command: Command): Output {
    return new Output(this.io.stdout, outputFormat(command.optsWithGlobals<{ writeOut: string }>().writeOut));
  }

  /** One line for the person at the terminal, beside the results on stdout. */
  note(text: string): void {
    this.io.stderr.write(`${text}\n`);
  }
}

function outputFormat(text: string): OutputFormat {
  if (text === 'simple' || text === 'json') return text;
  throw new CliError('usage', `--write-out ${JSON.stringify(text)} must be simple or json`);
}
