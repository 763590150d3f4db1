import { compare, type Compare, type Operator } from 'tenure/etcd';
import { CliError } from '../cli-error.ts';
import { parseLeaseId } from '../lease-id.ts';
import { unquoted } from './split-words.ts';

const linePattern = /^\s*(\w+)\(\s*("(?:[^"\\]|\\.)*"|`[^`]*`)\s*\)\s*(=|!=|<|>)\s*("(?:[^"\\]|\\.)*"|`[^`]*`|\S+)\s*$/;

/** A condition in the syntax of etcdctl: `mod("key") > "0"`. Throws CliError `usage`. */
export function parseCompare(line: string): Compare {
  const [, target, quotedKey = '', operator, quotedValue = ''] = linePattern.exec(line) ?? [];
  const key = unquoted(quotedKey);
  const value = unquoted(quotedValue);
  const number = (): bigint => {
    if (/^-?\d{1,18}$/.test(value)) return BigInt(value);
    throw new CliError('usage', `${JSON.stringify(value)} must be a whole number: ${line}`);
  };
  switch (target) {
    case 'c':
    case 'create':
      return compare.createRevision(key, operator as Operator, number());
    case 'm':
    case 'mod':
      return compare.modRevision(key, operator as Operator, number());
    case 'ver':
    case 'version':
      return compare.version(key, operator as Operator, number());
    case 'val':
    case 'value':
      return compare.value(key, operator as Operator, value);
    case 'lease':
      return compare.lease(key, operator as Operator, parseLeaseId(value));
    default: {
      const help = 'a condition is create, mod, version, value or lease of a key, such as: mod("key") > "0"';
      throw new CliError('usage', `${help}; not: ${line}`);
    }
  }
}
