import type { MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { ClientSession, CommandContext } from '../command-context.ts';
import { keyRange, type RangeOptions } from '../key-range.ts';
import { keyValueLines } from './key-value-lines.ts';
import { numberOption } from './number-option.ts';

interface WatchOptions extends RangeOptions {
  readonly rev?: bigint;
  readonly prevKv?: boolean;
}

type WatchReply = MessageShape<typeof etcdserverpb.WatchResponseSchema>;
type Event = MessageShape<typeof mvccpb.EventSchema>;

/** `tenure watch` */
export function addWatchCommand(program: Command, context: CommandContext): void {
  program
    .command('watch')
    .description('show the changes of a key, or of the range of keys [KEY, RANGE_END), until the command is stopped')
    .argument('<KEY>')
    .argument('[RANGE_END]')
    .option('--prefix', 'all keys that begin with KEY')
    .option('--from-key', 'all keys from KEY on')
    .option('--rev <REVISION>', 'from this revision on (default: from now on)', numberOption('--rev'))
    .option('--prev-kv', 'also show the previous value of each key')
    .action((key: string, rangeEnd: string | undefined, options: WatchOptions, command: Command) => {
      const request = {
        ...keyRange(key, rangeEnd, options),
        startRevision: options.rev ?? 0n,
        prevKv: options.prevKv === true,
      };
      return context.withClient(command, async (session) => watch(session, request));
    });
}

async function watch(
  { client, output }: ClientSession,
  request: MessageInitShape<typeof etcdserverpb.WatchCreateRequestSchema>,
): Promise<void> {
  const stream = await client.stream(etcdserverpb.Watch.method.watch);
  stream.send({ requestUnion: { case: 'createRequest', value: request } });
  for await (const reply of stream.messages) {
    if (reply.canceled) throw new CliError('failed', cancelReason(reply));
    if (reply.events.length === 0) continue;
    await output.reply(etcdserverpb.WatchResponseSchema, reply, () => reply.events.flatMap(eventLines));
  }
  throw new CliError('unreachable', 'the server ended the watch');
}

function eventLines(event: Event): (string | Uint8Array)[] {
  const kind = event.type === mvccpb.Event_EventType.PUT ? 'PUT' : 'DELETE';
  return [kind, ...keyValueLines([event.prevKv, event.kv])];
}

function cancelReason(reply: WatchReply): string {
  const reason = reply.cancelReason === '' ? 'the server ended the watch' : reply.cancelReason;
  return reply.compactRevision > 0n
    ? `${reason} (the oldest revision that is left is ${reply.compactRevision})`
    : reason;
}
