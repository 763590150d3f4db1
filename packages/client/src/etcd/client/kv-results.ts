import type { etcdserverpb } from '@tenure/protocol';
import { KeyValue } from './key-value.ts';

export interface GetResult {
  readonly kvs: readonly KeyValue[];
  /** The number of keys in the range, whatever the limit. */
  readonly count: bigint;
  readonly more: boolean;
  /** The revision of the store that was read. */
  readonly revision: bigint;
}

export interface PutResult {
  /** The revision that the put made: the key's modRevision. */
  readonly revision: bigint;
  readonly prevKv: KeyValue | undefined;
}

export interface DeleteResult {
  readonly revision: bigint;
  readonly deleted: bigint;
  readonly prevKvs: readonly KeyValue[];
}

export function getResult(answer: etcdserverpb.RangeResponse, revision: bigint): GetResult {
  return { kvs: answer.kvs.map((kv) => new KeyValue(kv)), count: answer.count, more: answer.more, revision };
}
