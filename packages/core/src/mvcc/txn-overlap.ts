import { IntervalSet } from './interval-set.ts';
import type { RequestOp } from './kv-types.ts';

/** The keys that a list of ops may put, and the ranges that it may delete. */
interface Writes {
  readonly puts: ReadonlySet<string>;
  readonly deletes: IntervalSet;
}

/**
 * Whether a key is put twice, or put and deleted, by ops that can run together. The two branches of a nested
 * transaction cannot, so they may put the same key. As in etcd, a nested put is compared only with the deletes of its
 * own level and of the siblings before it, and the end '\0' of a delete is compared literally, so that it covers
 * nothing.
 */
export function findOverlap(ops: readonly RequestOp[]): boolean {
  return collectWrites(ops) === undefined;
}

/** Undefined when the ops overlap. */
function collectWrites(ops: readonly RequestOp[]): Writes | undefined {
  const deletes = new IntervalSet();
  const puts = new Set<string>();
  for (const op of ops) {
    if (op.kind === 'deleteRange') addDelete(deletes, op.deleteRange.key, op.deleteRange.rangeEnd);
  }
  for (const op of ops) {
    if (op.kind !== 'txn') continue;
    const success = collectWrites(op.txn.success);
    const failure = success === undefined ? undefined : collectWrites(op.txn.failure);
    if (success === undefined || failure === undefined) return undefined;
    for (const key of new Set([...success.puts, ...failure.puts])) {
      if (!addPut(puts, deletes, key)) return undefined;
    }
    deletes.addAll(success.deletes);
    deletes.addAll(failure.deletes);
  }
  for (const op of ops) {
    if (op.kind === 'put' && !addPut(puts, deletes, op.put.key)) return undefined;
  }
  return { puts, deletes };
}

function addDelete(deletes: IntervalSet, key: string, rangeEnd: string): void {
  deletes.add(key, rangeEnd === '' ? `${key}\0` : rangeEnd);
}

/** Returns whether the key was not put or deleted before. */
function addPut(puts: Set<string>, deletes: IntervalSet, key: string): boolean {
  if (puts.has(key) || deletes.has(key)) return false;
  puts.add(key);
  return true;
}
