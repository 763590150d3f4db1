import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { keyRange, type RangeOptions } from '../key-range.ts';
import { keyValueLines } from './key-value-lines.ts';

export interface DelOptions extends RangeOptions {
  readonly prevKv?: boolean;
}

/** `tenure del` */
export function addDelCommand(program: Command, context: CommandContext): void {
  const del = program
    .command('del')
    .description('delete a key, or the range of keys [KEY, RANGE_END), and show how many were deleted');
  withDelOptions(del).action((key: string, rangeEnd: string | undefined, options: DelOptions, command: Command) => {
    const request = delRequest(key, rangeEnd, options);
    return context.withClient(command, async ({ client, output }) => {
      const reply = await client.call(etcdserverpb.KV.method.deleteRange, request);
      const simple = () => [reply.deleted.toString(), ...keyValueLines(reply.prevKvs)];
      await output.reply(etcdserverpb.DeleteRangeResponseSchema, reply, simple);
    });
  });
}

export function withDelOptions(command: Command): Command {
  return command
    .argument('<KEY>')
    .argument('[RANGE_END]')
    .option('--prefix', 'all keys that begin with KEY')
    .option('--from-key', 'all keys from KEY on')
    .option('--prev-kv', 'show the deleted keys');
}

export function delRequest(
  key: string,
  rangeEnd: string | undefined,
  options: DelOptions,
): MessageInitShape<typeof etcdserverpb.DeleteRangeRequestSchema> {
  return { ...keyRange(key, rangeEnd, options), prevKv: options.prevKv === true };
}
