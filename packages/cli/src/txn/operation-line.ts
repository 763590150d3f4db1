import { Command, CommanderError } from 'commander';
import type { Operation } from 'tenure/etcd';
import { CliError } from '../cli-error.ts';
import { delRequest, type DelOptions, withDelOptions } from '../commands/del-command.ts';
import { type GetOptions, getRequest, withGetOptions } from '../commands/get-command.ts';
import { type PutOptions, putRequest, withPutOptions } from '../commands/put-command.ts';
import { splitWords } from './split-words.ts';

/** A line such as `put key "a value" --lease a1`, with the flags of the commands. Throws CliError `usage`. */
export function parseOperation(line: string): Operation {
  const [name, ...words] = splitWords(line);
  let operation: Operation | undefined;
  const command = new Command(name)
    .helpOption(false)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  switch (name) {
    case 'put':
      withPutOptions(command).action((key: string, value: string | undefined, options: PutOptions) => {
        const bytes = Buffer.from(required(value, options, line));
        operation = { request: { case: 'requestPut', value: putRequest(key, bytes, options) } };
      });
      break;
    case 'get':
      withGetOptions(command).action((key: string, rangeEnd: string | undefined, options: GetOptions) => {
        operation = { request: { case: 'requestRange', value: getRequest(key, rangeEnd, options) } };
      });
      break;
    case 'del':
      withDelOptions(command).action((key: string, rangeEnd: string | undefined, options: DelOptions) => {
        operation = { request: { case: 'requestDeleteRange', value: delRequest(key, rangeEnd, options) } };
      });
      break;
    default:
      throw new CliError('usage', `an operation is put, get or del, not: ${line}`);
  }
  try {
    command.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw new CliError('usage', `${error.message.replace(/^error: /, '')}, in: ${line}`, { cause: error });
  }
  if (operation === undefined) throw new Error(`no operation was parsed from ${line}`);
  return operation;
}

// The value can't come from stdin, which has the transaction.
function required(value: string | undefined, options: PutOptions, line: string): string {
  if (value !== undefined) return value;
  if (options.ignoreValue === true) return '';
  throw new CliError('usage', `a put needs a value: ${line}`);
}
