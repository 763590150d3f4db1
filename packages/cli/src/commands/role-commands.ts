import { authpb, etcdserverpb } from '@tenure/protocol';
import { Argument, type Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { keyRange, type RangeOptions } from '../key-range.ts';
import { permissionLines, rangeWords } from './permission-lines.ts';

const { method } = etcdserverpb.Auth;
const permissionTypes = {
  read: authpb.Permission_Type.READ,
  write: authpb.Permission_Type.WRITE,
  readwrite: authpb.Permission_Type.READWRITE,
} as const;

/** `tenure role ...` */
export function addRoleCommands(program: Command, context: CommandContext): void {
  const role = program.command('role').description('roles, and what they allow');
  role
    .command('add')
    .description('add a role, which allows nothing yet')
    .argument('<ROLE>')
    .action((name: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.roleAdd, { name });
        await output.reply(etcdserverpb.AuthRoleAddResponseSchema, reply, () => [`Role ${name} created`]);
      }),
    );
  role
    .command('get')
    .description('show what a role allows')
    .argument('<ROLE>')
    .action((name: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.roleGet, { role: name });
        await output.reply(etcdserverpb.AuthRoleGetResponseSchema, reply, () => permissionLines(name, reply.perm));
      }),
    );
  role
    .command('list')
    .description('list the roles')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.roleList, {});
        await output.reply(etcdserverpb.AuthRoleListResponseSchema, reply, () => reply.roles);
      }),
    );
  role
    .command('delete')
    .description('delete a role, which no user has then')
    .argument('<ROLE>')
    .action((name: string, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(method.roleDelete, { role: name });
        await output.reply(etcdserverpb.AuthRoleDeleteResponseSchema, reply, () => [`Role ${name} deleted`]);
      }),
    );
  addPermissionCommands(role, context);
}

function addPermissionCommands(role: Command, context: CommandContext): void {
  role
    .command('grant-permission')
    .description('let a role read or write a key, or the range of keys [KEY, RANGE_END)')
    .argument('<ROLE>')
    .addArgument(new Argument('<TYPE>').choices(Object.keys(permissionTypes)))
    .argument('<KEY>')
    .argument('[RANGE_END]')
    .option('--prefix', 'all keys that begin with KEY')
    .option('--from-key', 'all keys from KEY on')
    .action(
      async (
        name: string,
        type: keyof typeof permissionTypes,
        key: string,
        rangeEnd: string | undefined,
        options: RangeOptions,
        command: Command,
      ) => {
        const perm = { ...keyRange(key, rangeEnd, options), permType: permissionTypes[type] };
        await context.withClient(command, async ({ client, output }) => {
          const reply = await client.call(method.roleGrantPermission, { name, perm });
          const simple = () => [`Role ${name} updated`];
          await output.reply(etcdserverpb.AuthRoleGrantPermissionResponseSchema, reply, simple);
        });
      },
    );
  role
    .command('revoke-permission')
    .description('take a permission from a role; KEY and RANGE_END as they were granted')
    .argument('<ROLE>')
    .argument('<KEY>')
    .argument('[RANGE_END]')
    .option('--prefix', 'all keys that begin with KEY')
    .option('--from-key', 'all keys from KEY on')
    .action(
      async (name: string, key: string, rangeEnd: string | undefined, options: RangeOptions, command: Command) => {
        const range = keyRange(key, rangeEnd, options);
        await context.withClient(command, async ({ client, output }) => {
          const reply = await client.call(method.roleRevokePermission, { role: name, ...range });
          const what = range.rangeEnd.length === 0 ? `key ${key}` : `range ${rangeWords(range)}`;
          const simple = () => [`Permission of ${what} is revoked from role ${name}`];
          await output.reply(etcdserverpb.AuthRoleRevokePermissionResponseSchema, reply, simple);
        });
      },
    );
}
