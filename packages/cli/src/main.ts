import { CommanderError } from 'commander';
import { CliError, exitCodes } from './cli-error.ts';
import { CommandContext, type CommandIo } from './command-context.ts';
import { serveCommand } from './commands/serve-command.ts';
import { buildProgram } from './program.ts';

/** Runs one command line (without node and script) and resolves with the exit code. Never rejects for bad input. */
export async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  try {
    // The server's own table of settings parses and explains its flags.
    if (argv[0] === 'serve') return await serveCommand(argv.slice(1), io);
    if (argv[0] === 'help' && argv[1] === 'serve') return await serveCommand(['--help'], io);
    const context = new CommandContext(io);
    await buildProgram(context).parseAsync(argv, { from: 'user' });
    return context.exitCode;
  } catch (error) {
    // Commander has printed its message, or the help that was asked for, by itself.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (error instanceof CliError) {
      io.stderr.write(`Error: ${error.message}\n`);
      return exitCodes[error.code];
    }
    throw error;
  }
}
