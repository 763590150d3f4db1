import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { text } from 'node:stream/consumers';
import type { CommandContext } from '../command-context.ts';
import { parseTxn } from '../txn/parse-txn.ts';
import { keyValueLines } from './key-value-lines.ts';

const afterHelp = `
Three parts, each ended by an empty line: conditions (create, mod, version, value or lease of a key, and = != < >), the
operations if all are true, the operations if not (put, get and del with their flags).

  tenure txn <<'END'
  mod("my/key") = "0"

  put my/key "created" --lease a1

  get my/key
  END
`;

/** `tenure txn` */
export function addTxnCommand(program: Command, context: CommandContext): void {
  program
    .command('txn')
    .description('run a transaction, which is read from stdin in the syntax of etcdctl')
    .addHelpText('after', afterHelp)
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(etcdserverpb.KV.method.txn, parseTxn(await text(context.io.stdin)));
        await output.reply(etcdserverpb.TxnResponseSchema, reply, () => [
          reply.succeeded ? 'SUCCESS' : 'FAILURE',
          ...reply.responses.flatMap((response) => ['', ...resultLines(response)]),
        ]);
      }),
    );
}

function resultLines({ response }: etcdserverpb.ResponseOp): (string | Uint8Array)[] {
  switch (response.case) {
    case 'responsePut':
      return ['OK', ...keyValueLines([response.value.prevKv])];
    case 'responseDeleteRange':
      return [response.value.deleted.toString(), ...keyValueLines(response.value.prevKvs)];
    case 'responseRange':
      return keyValueLines(response.value.kvs);
    default:
      return [];
  }
}
