import type { MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { keyRange, type RangeOptions } from '../key-range.ts';
import { keyValueLines } from './key-value-lines.ts';
import { numberOption } from './number-option.ts';

export interface GetOptions extends RangeOptions {
  readonly rev?: bigint;
  readonly limit?: bigint;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  readonly sortBy?: string;
  readonly order?: string;
  readonly serializable?: boolean;
  readonly printValueOnly?: boolean;
}

const { RangeRequest_SortOrder: SortOrder, RangeRequest_SortTarget: SortTarget } = etcdserverpb;

const sortTargets: Readonly<Record<string, etcdserverpb.RangeRequest_SortTarget>> = {
  KEY: SortTarget.KEY,
  VERSION: SortTarget.VERSION,
  CREATE: SortTarget.CREATE,
  MODIFY: SortTarget.MOD,
  VALUE: SortTarget.VALUE,
};
const sortOrders: Readonly<Record<string, etcdserverpb.RangeRequest_SortOrder>> = {
  ASCEND: SortOrder.ASCEND,
  DESCEND: SortOrder.DESCEND,
};

/** `tenure get` */
export function addGetCommand(program: Command, context: CommandContext): void {
  const get = program.command('get').description('show a key, or the range of keys [KEY, RANGE_END)');
  withGetOptions(get).action((key: string, rangeEnd: string | undefined, options: GetOptions, command: Command) => {
    const request = getRequest(key, rangeEnd, options);
    return context.withClient(command, async ({ client, output }) => {
      const reply = await client.call(etcdserverpb.KV.method.range, request);
      await output.reply(etcdserverpb.RangeResponseSchema, reply, () => simpleLines(reply, options));
    });
  });
}

export function withGetOptions(command: Command): Command {
  return command
    .argument('<KEY>')
    .argument('[RANGE_END]')
    .option('--prefix', 'all keys that begin with KEY')
    .option('--from-key', 'all keys from KEY on')
    .option('--rev <REVISION>', 'as the keys were at this revision', numberOption('--rev'))
    .option('--limit <N>', 'at most this many keys', numberOption('--limit'))
    .option('--keys-only', 'leave the values out')
    .option('--count-only', 'only how many keys there are')
    .addOption(choice('--sort-by <WHAT>', 'sort by this', Object.keys(sortTargets)))
    .addOption(choice('--order <ORDER>', 'ascending or descending', Object.keys(sortOrders)))
    .option('--serializable', 'read from this server alone, which may return an older state')
    .option('--print-value-only', 'leave the keys out');
}

export function getRequest(
  key: string,
  rangeEnd: string | undefined,
  options: GetOptions,
): MessageInitShape<typeof etcdserverpb.RangeRequestSchema> {
  return {
    ...keyRange(key, rangeEnd, options),
    revision: options.rev ?? 0n,
    limit: options.limit ?? 0n,
    keysOnly: options.keysOnly === true,
    countOnly: options.countOnly === true,
    serializable: options.serializable === true,
    sortTarget: sortTargets[options.sortBy ?? 'KEY'] ?? SortTarget.KEY,
    sortOrder: sortOrder(options),
  };
}

// `--sort-by` without `--order` sorts ascending. The server would not sort at all without an order.
function sortOrder(options: GetOptions): etcdserverpb.RangeRequest_SortOrder {
  const implied = options.sortBy === undefined ? SortOrder.NONE : SortOrder.ASCEND;
  return sortOrders[options.order ?? ''] ?? implied;
}

function simpleLines(
  reply: MessageShape<typeof etcdserverpb.RangeResponseSchema>,
  options: GetOptions,
): (string | Uint8Array)[] {
  if (options.countOnly === true) return [reply.count.toString()];
  if (options.printValueOnly === true) return reply.kvs.map((kv) => kv.value);
  return keyValueLines(reply.kvs);
}

function choice(flags: string, description: string, values: readonly string[]): Option {
  return new Option(flags, description).choices(values).argParser((text: string) => {
    const upper = text.toUpperCase();
    if (!values.includes(upper)) throw new InvalidArgumentError(`It must be one of ${values.join(', ')}.`);
    return upper;
  });
}
