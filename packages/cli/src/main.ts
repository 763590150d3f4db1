import { CliError, exitCodes } from './cli-error.ts';
import type { CommandIo } from './command-io.ts';

/**
 * Runs one command line (without node and script) and resolves with the exit code. Never rejects for bad input. Loads
 * only the modules that the command needs: `serve` does not need the library, nor a client command the server.
 */
export async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  try {
    // The settings table of the server parses and documents its flags.
    if (argv[0] === 'serve') return await serve(argv.slice(1), io);
    if (argv[0] === 'help' && argv[1] === 'serve') return await serve(['--help'], io);
    const { runProgram } = await import('./program.ts');
    return await runProgram(argv, io);
  } catch (error) {
    if (error instanceof CliError) {
      io.stderr.write(`Error: ${error.message}\n`);
      return exitCodes[error.code];
    }
    throw error;
  }
}

async function serve(argv: readonly string[], io: CommandIo): Promise<number> {
  const { serveCommand } = await import('./commands/serve-command.ts');
  return serveCommand(argv, io);
}
