import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { ClientSession, CommandContext } from '../command-context.ts';
import { newPassword } from '../login.ts';
import { permissionLines } from './permission-lines.ts';

interface NewPasswordOptions {
  readonly newPasswordStdin?: boolean;
}

interface AddOptions extends NewPasswordOptions {
  /** False with --no-password. The flag --password belongs to the program, and is not in here. */
  readonly password: boolean;
}

const { method } = etcdserverpb.Auth;
const fromStdin = 'its password is the first line of stdin, after that of --password-stdin';

/** `tenure user ...` */
export function addUserCommands(program: Command, context: CommandContext): void {
  const user = program.command('user').description('users, their passwords and their roles');
  addUserAdd(user, context);
  addPasswd(user, context);
  user
    .command('get')
    .description('show the roles of a user')
    .argument('<NAME>')
    .option('--detail', 'show what the roles allow')
    .action((name: string, options: { detail?: boolean }, command: Command) =>
      context.withClient(command, (session) => getUser(session, name, options.detail === true)),
    );
  user
    .command('list')
    .description('list the users')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.userList, {});
        await output.reply(etcdserverpb.AuthUserListResponseSchema, reply, () => reply.users);
      }),
    );
  user
    .command('delete')
    .description('delete a user, whose tokens end')
    .argument('<NAME>')
    .action((name: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.userDelete, { name });
        await output.reply(etcdserverpb.AuthUserDeleteResponseSchema, reply, () => [`User ${name} deleted`]);
      }),
    );
  addRolesOfUsers(user, context);
}

function addUserAdd(user: Command, context: CommandContext): void {
  user
    .command('add')
    .description('add a user, who has no role yet; the password is asked for')
    .argument('<NAME>')
    .option('--no-password', 'without a password: only the certificate of a client can be this user')
    .option('--new-password-stdin', fromStdin)
    .action(async (name: string, options: AddOptions, command: Command) => {
      const noPassword = !options.password;
      if (name.includes(':')) {
        const words = 'a name with a colon: others can read a password on the command line, so it is asked for';
        throw new CliError('usage', `${words}, or give --new-password-stdin`);
      }
      if (noPassword && options.newPasswordStdin === true) {
        throw new CliError('usage', '--no-password and --new-password-stdin exclude each other');
      }
      await context.withClient(command, async ({ client, output }) => {
        const password = noPassword ? '' : await newPassword(context.io, name, options);
        const reply = await client.call(method.userAdd, { name, password, options: { noPassword } });
        await output.reply(etcdserverpb.AuthUserAddResponseSchema, reply, () => [`User ${name} created`]);
      });
    });
}

function addPasswd(user: Command, context: CommandContext): void {
  user
    .command('passwd')
    .description('change the password of a user, which is asked for; tokens of the user end')
    .argument('<NAME>')
    .option('--new-password-stdin', fromStdin)
    .action((name: string, options: NewPasswordOptions, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const password = await newPassword(context.io, name, options);
        const reply = await client.call(method.userChangePassword, { name, password });
        await output.reply(etcdserverpb.AuthUserChangePasswordResponseSchema, reply, () => ['Password updated']);
      }),
    );
}

function addRolesOfUsers(user: Command, context: CommandContext): void {
  user
    .command('grant-role')
    .description('give a user a role; the role root allows everything')
    .argument('<NAME>')
    .argument('<ROLE>')
    .action((name: string, role: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.userGrantRole, { user: name, role });
        const simple = () => [`Role ${role} is granted to user ${name}`];
        await output.reply(etcdserverpb.AuthUserGrantRoleResponseSchema, reply, simple);
      }),
    );
  user
    .command('revoke-role')
    .description('take a role from a user')
    .argument('<NAME>')
    .argument('<ROLE>')
    .action((name: string, role: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.userRevokeRole, { name, role });
        const simple = () => [`Role ${role} is revoked from user ${name}`];
        await output.reply(etcdserverpb.AuthUserRevokeRoleResponseSchema, reply, simple);
      }),
    );
}

async function getUser({ client, output }: ClientSession, name: string, detail: boolean): Promise<void> {
  const reply = await client.call(method.userGet, { name });
  if (!detail) {
    const simple = () => [`User: ${name}`, `Roles:${reply.roles.map((role) => ` ${role}`).join('')}`];
    return output.reply(etcdserverpb.AuthUserGetResponseSchema, reply, simple);
  }
  const roles = await Promise.all(reply.roles.map((role) => client.call(method.roleGet, { role })));
  const lines = roles.flatMap((each, at) => ['', ...permissionLines(reply.roles[at] ?? '', each.perm)]);
  await output.reply(etcdserverpb.AuthUserGetResponseSchema, reply, () => [`User: ${name}`, ...lines]);
}
