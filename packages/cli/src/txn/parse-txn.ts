import type { Compare, Operation } from 'tenure/etcd';
import { parseCompare } from './compare-line.ts';
import { parseOperation } from './operation-line.ts';

export interface TxnRequest {
  readonly compare: Compare[];
  readonly success: Operation[];
  readonly failure: Operation[];
}

/**
 * A transaction in the syntax of etcdctl: conditions, the operations if all are true, and the operations if not, one
 * per line. Each part ends with an empty line or the end of the text. The rest is ignored. Throws a CliError `usage`.
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
