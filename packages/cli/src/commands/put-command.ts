import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { buffer } from 'node:stream/consumers';
import type { CommandContext } from '../command-context.ts';
import { parseLeaseId } from '../lease-id.ts';
import { keyValueLines } from './key-value-lines.ts';

export interface PutOptions {
  readonly lease?: bigint;
  readonly prevKv?: boolean;
  readonly ignoreValue?: boolean;
  readonly ignoreLease?: boolean;
}

/** `tenure put` */
export function addPutCommand(program: Command, context: CommandContext): void {
  withPutOptions(program.command('put').description('set a key; without VALUE the value is read from stdin')).action(
    (key: string, value: string | undefined, options: PutOptions, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const bytes = options.ignoreValue === true ? new Uint8Array() : await valueBytes(value, context);
        const reply = await client.call(etcdserverpb.KV.method.put, putRequest(key, bytes, options));
        await output.reply(etcdserverpb.PutResponseSchema, reply, () => ['OK', ...keyValueLines([reply.prevKv])]);
      }),
  );
}

export function withPutOptions(command: Command): Command {
  return command
    .argument('<KEY>')
    .argument('[VALUE]')
    .option('--lease <ID>', 'attach the key to this lease, so that it is deleted when the lease ends', parseLeaseId)
    .option('--prev-kv', 'show the previous value of the key')
    .option('--ignore-value', 'keep the value and change the lease alone')
    .option('--ignore-lease', 'keep the lease and change the value alone');
}

export function putRequest(
  key: string,
  value: Uint8Array,
  options: PutOptions,
): MessageInitShape<typeof etcdserverpb.PutRequestSchema> {
  return {
    key: Buffer.from(key),
    value,
    lease: options.lease ?? 0n,
    prevKv: options.prevKv === true,
    ignoreValue: options.ignoreValue === true,
    ignoreLease: options.ignoreLease === true,
  };
}

async function valueBytes(value: string | undefined, context: CommandContext): Promise<Uint8Array> {
  return value === undefined ? buffer(context.io.stdin) : Buffer.from(value);
}
