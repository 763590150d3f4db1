import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { rangeOf } from './key-range.ts';
import type { KeyRange } from './key-range.ts';
import { bytesOf } from './key-value.ts';
import type { Bytes } from './key-value.ts';
import type { GetOptions, PutOptions } from './kv-options.ts';

const { RangeRequest_SortOrder: orders, RangeRequest_SortTarget: sortTargets } = etcdserverpb;

export function putRequest(
  key: Bytes,
  value: Bytes,
  options: PutOptions,
): MessageInitShape<typeof etcdserverpb.PutRequestSchema> {
  return {
    key: bytesOf(key),
    value: bytesOf(value),
    lease: options.lease ?? 0n,
    prevKv: options.prevKv === true,
    ignoreLease: options.keepLease === true,
    ignoreValue: options.keepValue === true,
  };
}

export function rangeRequest(
  range: KeyRange,
  options: GetOptions,
): MessageInitShape<typeof etcdserverpb.RangeRequestSchema> {
  return {
    ...rangeOf(range),
    limit: BigInt(options.limit ?? 0),
    revision: options.revision ?? 0n,
    keysOnly: options.keysOnly === true,
    countOnly: options.countOnly === true,
    serializable: options.serializable === true,
    ...sortOf(options),
  };
}

function sortOf({
  sortBy,
  order,
}: GetOptions): Pick<MessageInitShape<typeof etcdserverpb.RangeRequestSchema>, 'sortOrder' | 'sortTarget'> {
  if (sortBy === undefined && order === undefined) return {};
  const target = {
    key: 'KEY',
    version: 'VERSION',
    createRevision: 'CREATE',
    modRevision: 'MOD',
    value: 'VALUE',
  } as const;
  return {
    sortOrder: order === 'descending' ? orders.DESCEND : orders.ASCEND,
    sortTarget: sortTargets[target[sortBy ?? 'key']],
  };
}
