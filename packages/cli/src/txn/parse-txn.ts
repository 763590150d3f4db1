import type { Compare, Operation } from 'tenure/etcd';
import { parseCompare } from './compare-line.ts';
import { parseOperation } from './operation-line.ts';

export interface TxnRequest {
  readonly compare: Compare[];
  readonly success: Operation[];
  readonly failure: Operation[];
}

/**
 * A transaction as etcdctl reads it: conditions, what to do when all are true and what to do when not, one a line, each
 * part ended by an empty line or the end of the text. What follows is not looked at. Throws CliError `usage`.
 */
export function parseTxn(text: string): TxnRequest {
  const lines = text.split('\n').map((line) => line.trim());
  const nextPart = (): string[] => {
    const end = lines.indexOf('');
    return end < 0 ? lines.splice(0) : lines.splice(0, end + 1).slice(0, -1);
  };
  const conditions = nextPart().map(parseCompare);
  const success = nextPart().map(parseOperation);
  return { compare: conditions, success, failure: nextPart().map(parseOperation) };
}
