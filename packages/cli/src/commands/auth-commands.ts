import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command-context.ts';
import { loadServer } from '../load-server.ts';
import { explained } from './explained.ts';
import { placeOf, type PlaceOptions, startFlags, withPlace } from './log-place-options.ts';

interface RecoverOptions extends PlaceOptions {
  readonly passwordFile?: string;
}

const { Auth } = etcdserverpb;

/** `tenure auth ...` */
export function addAuthCommands(program: Command, context: CommandContext): void {
  const auth = program.command('auth').description('ask clients for a user and a password, or stop it');
  auth
    .command('enable')
    .description('from now on every client needs a user; root must exist, with the role root')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Auth.method.authEnable, {});
        await output.reply(etcdserverpb.AuthEnableResponseSchema, reply, () => ['Authentication Enabled']);
      }),
    );
  auth
    .command('disable')
    .description('from now on every client may do everything')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Auth.method.authDisable, {});
        await output.reply(etcdserverpb.AuthDisableResponseSchema, reply, () => ['Authentication Disabled']);
      }),
    );
  auth
    .command('status')
    .description('show whether authentication is enabled')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Auth.method.authStatus, {});
        await output.reply(etcdserverpb.AuthStatusResponseSchema, reply, () => [
          `Authentication Status: ${reply.enabled}`,
          `AuthRevision: ${reply.authRevision}`,
        ]);
      }),
    );
  addRecoverRoot(auth, context);
}

function addRecoverRoot(auth: Command, context: CommandContext): void {
  withPlace(
    auth
      .command('recover-root')
      .description('set the password of root in a log that no server uses, when it is lost')
      .option('--password-file <FILE>', 'file whose first line is the new password; one is made without it'),
    'of this',
  ).action(async (options: RecoverOptions, command: Command) => {
    const place = placeOf(options, context.io.env);
    if (place === undefined) throw new CliError('usage', 'say where the log is: --data-dir DIR, or --engine URL');
    const given = options.passwordFile === undefined ? undefined : passwordIn(options.passwordFile);
    const password = given ?? randomBytes(18).toString('base64url');
    const { recoverRoot } = await loadServer();
    const { isNew, enabled } = await explained(() => recoverRoot(place, password));
    const shown = given === undefined ? { password } : {};
    await context
      .output(command)
      .value({ isNew, enabled, ...shown }, () => [
        `${isNew ? 'the user root was made' : 'root has a new password'}, and has the role root`,
        ...(given === undefined ? [`its password is: ${password}`] : []),
        enabled ? 'authentication is enabled, as before' : 'authentication is disabled, as before',
        `start the server again: tenure serve ${startFlags(options)}`,
      ]);
  });
}

function passwordIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError('failed', `--password-file ${file} cannot be read`, { cause: error });
  }
  const [password = ''] = text.split(/\r?\n/);
  if (password === '') throw new CliError('usage', `--password-file ${file} has an empty first line`);
  return password;
}
