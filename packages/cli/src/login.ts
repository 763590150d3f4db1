import type { Command } from 'commander';
import { CliError } from './cli-error.ts';
import type { CommandIo } from './command-io.ts';
import { askSecret, isTerminal, lineOfStdin } from './secret-input.ts';

interface LoginFlags {
  readonly user?: string;
  /** A boolean of the flag --no-password of `tenure user add`. */
  readonly password?: string | boolean;
  readonly passwordStdin?: boolean;
}

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** The flags have no defaults for commander, which would show the password of TENURE_USER in its help. */
export function withLoginOptions(command: Command): Command {
  return command
    .option('--user <NAME[:PASSWORD]>', 'user; the password is asked for if nothing gives it [TENURE_USER]')
    .option('--password <PASSWORD>', 'its password: others can read a command line, so rather [TENURE_PASSWORD]')
    .option('--password-stdin', 'its password is the first line of stdin');
}

/**
 * The user of a command, undefined without one. A user with a colon is NAME:PASSWORD, as for etcdctl, unless a flag has
 * the password. No message has any part of it.
 */
export async function loginOf(command: Command, io: CommandIo): Promise<Login | undefined> {
  const flags = command.optsWithGlobals<LoginFlags>();
  const given = flags.user ?? (io.env['TENURE_USER'] || '');
  const flagged = typeof flags.password === 'string' ? flags.password : undefined;
  const byFlag = flagged !== undefined || flags.passwordStdin === true;
  if (flagged !== undefined && flags.passwordStdin === true) {
    throw new CliError('usage', '--password and --password-stdin exclude each other');
  }
  if (given === '') {
    if (byFlag) throw new CliError('usage', 'a password needs a user: --user NAME');
    return undefined;
  }
  if (byFlag) return { user: given, password: flagged ?? (await lineOfStdin(io.stdin)) };
  const colon = given.indexOf(':');
  if (colon >= 0) return { user: given.slice(0, colon), password: given.slice(colon + 1) };
  return { user: given, password: io.env['TENURE_PASSWORD'] || (await asked(io, given)) };
}

async function asked({ stdin, stderr }: CommandIo, user: string): Promise<string> {
  if (isTerminal(stdin)) return askSecret(stdin, stderr, `Password of ${user}: `);
  throw new CliError('usage', `no password for ${user}: set TENURE_PASSWORD, or give it with --password-stdin`);
}

/** A password to be set for a user: typed twice at a terminal, or a line of stdin. Never on the command line. */
export async function newPassword(
  { stdin, stderr }: CommandIo,
  user: string,
  options: { readonly newPasswordStdin?: boolean },
): Promise<string> {
  if (options.newPasswordStdin === true) return notEmpty(await lineOfStdin(stdin));
  if (!isTerminal(stdin)) {
    throw new CliError('usage', `the new password of ${user} is asked for at a terminal: or give --new-password-stdin`);
  }
  const password = notEmpty(await askSecret(stdin, stderr, `New password of ${user}: `));
  const again = await askSecret(stdin, stderr, 'The same again: ');
  if (password !== again) throw new CliError('usage', 'the two passwords differ');
  return password;
}

function notEmpty(password: string): string {
  if (password === '') throw new CliError('usage', 'the new password is empty');
  return password;
}
