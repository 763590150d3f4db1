import { Command, CommanderError, Option } from 'commander';
import { exitCodes } from './cli-error.ts';
import { withConnectionOptions } from './connection-options.ts';
import { CommandContext } from './command-context.ts';
import type { CommandIo } from './command-io.ts';
import { addDelCommand } from './commands/del-command.ts';
import { addGetCommand } from './commands/get-command.ts';
import { addLeaseCommands } from './commands/lease-commands.ts';
import { addAuthCommands } from './commands/auth-commands.ts';
import { addLogCommands } from './commands/log-commands.ts';
import { addPutCommand } from './commands/put-command.ts';
import { addRoleCommands } from './commands/role-commands.ts';
import { addSnapshotCommands } from './commands/snapshot-commands.ts';
import { addUserCommands } from './commands/user-commands.ts';
import { addWatchCommand } from './commands/watch-command.ts';
import { addCompletionCommand } from './commands/completion-command.ts';
import { addElectCommand } from './commands/elect-command.ts';
import { addLockCommand } from './commands/lock-command.ts';
import { addMembersCommand } from './commands/members-command.ts';
import { addStatusCommand } from './commands/status-command.ts';
import { addTxnCommand } from './commands/txn-command.ts';
import type { OutputFormat } from './output/output.ts';
import { version } from './version.ts';

const formats: readonly OutputFormat[] = ['simple', 'json'];

const afterHelp = `
Lease ids are 1 to 16 hex digits. Put -- before a key that begins with a dash.
Exit codes: 0 done, ${exitCodes.failed} refused or failed, ${exitCodes.usage} wrong usage, \
${exitCodes.unreachable} no server reached, ${exitCodes.timeout} no answer in time (a change may have been made),
${exitCodes['not-acquired']} the lease was not acquired, ${exitCodes.lost} it was lost (tenure lock, tenure elect).

A first lease:
  tenure serve                               in one terminal; in another:
  tenure lease grant 60 --id a1              a lease of 60 seconds
  tenure put my/key hello --lease a1         a key that goes with it
  tenure lease keep-alive a1                 stop this, and the key is gone a minute later
`;

/** Runs a command line of any command but `serve` and resolves with the exit code. Rejects with CliError. */
export async function runProgram(argv: readonly string[], io: CommandIo): Promise<number> {
  const context = new CommandContext(io);
  try {
    await buildProgram(context).parseAsync(argv, { from: 'user' });
    return context.exitCode;
  } catch (error) {
    // Commander has already printed its message or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    throw error;
  }
}

/** All commands but \`serve\`, which only shows its name here: its flags come from the server's package. */
export function buildProgram(context: CommandContext): Command {
  const program = withConnectionOptions(new Command('tenure'), context.io.env)
    .description('A lease server with the API of etcd v3, and a client for it.')
    .version(version, '--version', 'show the version')
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand('help [command]', 'show help for a command')
    .addOption(new Option('-w, --write-out <FORMAT>', 'how to show results').choices(formats).default('simple'))
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', afterHelp)
    .showHelpAfterError('(tenure --help lists the commands)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void context.io.stdout.write(text),
      writeErr: (text) => void context.io.stderr.write(text),
    });
  program.command('serve').description('run a lease server (tenure serve --help shows its flags)');
  addLeaseCommands(program, context);
  addPutCommand(program, context);
  addGetCommand(program, context);
  addDelCommand(program, context);
  addWatchCommand(program, context);
  addTxnCommand(program, context);
  addLockCommand(program, context);
  addElectCommand(program, context);
  addMembersCommand(program, context);
  addStatusCommand(program, context);
  addSnapshotCommands(program, context);
  addLogCommands(program, context);
  addUserCommands(program, context);
  addRoleCommands(program, context);
  addAuthCommands(program, context);
  addCompletionCommand(program, context);
  return program;
}
