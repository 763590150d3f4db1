import type { Command } from 'commander';
import { EtcdClient } from 'tenure/etcd';
import { CliError } from './cli-error.ts';
import type { CommandIo } from './command-io.ts';
import { connectionOptions } from './connection-options.ts';
import { explainFailure } from './etcd-failure.ts';
import { Output, type OutputFormat } from './output/output.ts';

/** The client and the output of a command that talks to a server. */
export interface ClientSession {
  readonly client: EtcdClient;
  readonly output: Output;
}

/** The options that all client commands share, and the client and the output built from them. */
export class CommandContext {
  readonly io: CommandIo;
  /** The exit code of the command if it throws no error. */
  exitCode = 0;

  constructor(io: CommandIo) {
    this.io = io;
  }

  /**
   * Runs `action` with a client built from the options, and always closes the client. An error of the library becomes a
   * CliError.
   */
  async withClient(command: Command, action: (session: ClientSession) => Promise<void>): Promise<void> {
    const output = this.output(command);
    const options = await connectionOptions(command, this.io);
    try {
      await using client = new EtcdClient(options);
      await action({ client, output });
    } catch (error) {
      throw explainFailure(error, options.timeoutMs);
    }
  }

  /** The output for results, in the format of `--write-out`. */
  output(command: Command): Output {
    return new Output(this.io.stdout, outputFormat(command.optsWithGlobals<{ writeOut: string }>().writeOut));
  }

  /** One line on stderr for the user, since stdout has only the results. */
  note(text: string): void {
    this.io.stderr.write(`${text}\n`);
  }
}

function outputFormat(text: string): OutputFormat {
  if (text === 'simple' || text === 'json') return text;
  throw new CliError('usage', `--write-out ${JSON.stringify(text)} must be simple or json`);
}
