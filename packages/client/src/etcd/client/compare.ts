import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { rangeOf } from './key-range.ts';
import type { KeyRange } from './key-range.ts';
import { bytesOf } from './key-value.ts';
import type { Bytes } from './key-value.ts';

export type Operator = '=' | '!=' | '<' | '>';

/** One condition of a transaction. Of a range of keys it must be true for each key that is there. */
export type Compare = MessageInitShape<typeof etcdserverpb.CompareSchema>;

const { Compare_CompareResult: results, Compare_CompareTarget: targets } = etcdserverpb;

const resultOf = {
  '=': results.EQUAL,
  '!=': results.NOT_EQUAL,
  '<': results.LESS,
  '>': results.GREATER,
} as const satisfies Record<Operator, etcdserverpb.Compare_CompareResult>;

/** The conditions of a transaction. A key that does not exist has the revisions, the version and the lease 0. */
export const compare = {
  createRevision: (key: KeyRange, operator: Operator, revision: bigint): Compare => ({
    ...base(key, operator),
    target: targets.CREATE,
    targetUnion: { case: 'createRevision', value: revision },
  }),
  modRevision: (key: KeyRange, operator: Operator, revision: bigint): Compare => ({
    ...base(key, operator),
    target: targets.MOD,
    targetUnion: { case: 'modRevision', value: revision },
  }),
  version: (key: KeyRange, operator: Operator, version: bigint): Compare => ({
    ...base(key, operator),
    target: targets.VERSION,
    targetUnion: { case: 'version', value: version },
  }),
  lease: (key: KeyRange, operator: Operator, lease: bigint): Compare => ({
    ...base(key, operator),
    target: targets.LEASE,
    targetUnion: { case: 'lease', value: lease },
  }),
  value: (key: KeyRange, operator: Operator, value: Bytes): Compare => ({
    ...base(key, operator),
    target: targets.VALUE,
    targetUnion: { case: 'value', value: bytesOf(value) },
  }),
  exists: (key: Bytes): Compare => compare.version(key, '>', 0n),
  isAbsent: (key: KeyRange): Compare => compare.version(key, '=', 0n),
};

function base(key: KeyRange, operator: Operator): Compare {
  return { ...rangeOf(key), result: resultOf[operator] };
}
