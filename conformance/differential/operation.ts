import type { MessageInitShape } from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { etcdserverpb } from '@tenure/protocol';
import { bytes } from '../cases/bytes.ts';
import type { WatchCreate } from '../client/watch-stream.ts';
import type { CompareInit, Op } from '../cases/txn-parts.ts';

type Range = MessageInitShape<typeof etcdserverpb.RangeRequestSchema>;
type Put = MessageInitShape<typeof etcdserverpb.PutRequestSchema>;
type Delete = MessageInitShape<typeof etcdserverpb.DeleteRangeRequestSchema>;
type Txn = MessageInitShape<typeof etcdserverpb.TxnRequestSchema>;

/** One call of a history. Keys, revisions and lease ids are made by the place where the call is sent. */
export type Operation =
  | { readonly call: 'range'; readonly make: (place: Place) => Range }
  | { readonly call: 'put'; readonly make: (place: Place) => Put }
  | { readonly call: 'deleteRange'; readonly make: (place: Place) => Delete }
  | { readonly call: 'txn'; readonly make: (place: Place) => Txn }
  | { readonly call: 'compact'; readonly make: (place: Place) => { revision: bigint; physical: boolean } }
  | { readonly call: 'leaseGrant'; readonly make: (place: Place) => { ID: bigint; TTL: bigint } }
  | { readonly call: 'leaseRevoke'; readonly make: (place: Place) => { ID: bigint } }
  | { readonly call: 'leaseTimeToLive'; readonly make: (place: Place) => { ID: bigint; keys: boolean } }
  | { readonly call: 'watch'; readonly make: (place: Place) => WatchCreate & { startRevision: bigint } }
  | { readonly call: 'keepAlive'; readonly make: (place: Place) => { ID: bigint } };

/** A server in one run: revision 3 of a history is another number on each server. */
export interface Place {
  /** The server's revision when the run began. */
  readonly baseRevision: bigint;
  key(name: string): Uint8Array<ArrayBuffer>;
  leaseId(index: number): bigint;
}

const leaseCount = 4;
/** Few enough keys that etcd sorts them by insertion, and so keeps equal ones in the order of their keys. */
const names = ['a', 'b', 'c', 'd', 'da', 'e', '\xff', ''];
const values = ['', '0', '1', 'a', '\x80'];

const name = fc.constantFrom(...names);
const value = fc.constantFrom(...values);
const int64Edge = fc.constantFrom(-(2n ** 63n), -1n, 2n ** 63n - 1n);
const revision = fc.oneof(
  { weight: 8, arbitrary: fc.constant(undefined) },
  { weight: 8, arbitrary: fc.integer({ min: -2, max: 12 }) },
  { weight: 1, arbitrary: int64Edge },
);
const lease = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: fc.nat(leaseCount - 1) },
);
const smallCount = fc.constantFrom(0n, 0n, 1n, 2n, 3n, 7n, 8n, -1n);
const seldom = fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });

function revisionAt(place: Place, offset: number | bigint | undefined): bigint {
  if (offset === undefined) return 0n;
  return typeof offset === 'bigint' ? offset : place.baseRevision + BigInt(offset);
}

/** All keys of the run from one on: the end belongs to the run, so that runs do not overlap. */
function keyRangeFrom(place: Place, from: string): { key: Uint8Array<ArrayBuffer>; rangeEnd: Uint8Array<ArrayBuffer> } {
  return { key: place.key(from), rangeEnd: place.key('\xff\xff') };
}

/** The forms of a range: one key, an interval, all keys, all keys from one on. */
const keyRange = fc
  .tuple(fc.constantFrom('one', 'between', 'all', 'from'), name, name)
  .map(([form, from, to]) => (place: Place) => {
    if (form === 'one') return { key: place.key(from) };
    if (form === 'between') return { key: place.key(from), rangeEnd: place.key(to) };
    return keyRangeFrom(place, form === 'all' ? '' : from);
  });

const range = fc
  .record({
    keys: keyRange,
    limit: smallCount,
    revision,
    sortOrder: fc.constantFrom(0, 0, 1, 2),
    sortTarget: fc.constantFrom(0, 0, 1, 2, 3, 4),
    serializable: fc.boolean(),
    keysOnly: seldom,
    countOnly: seldom,
    bounds: fc.tuple(revision, revision, revision, revision),
    bounded: seldom,
  })
  .map(({ keys, bounds, bounded, revision: offset, ...rest }) => (place: Place): Range => {
    const [minModRevision, maxModRevision, minCreateRevision, maxCreateRevision] = bounds.map((each) =>
      bounded ? revisionAt(place, each) : 0n,
    );
    return {
      ...rest,
      ...keys(place),
      revision: revisionAt(place, offset),
      ...{ minModRevision, maxModRevision, minCreateRevision, maxCreateRevision },
    } as Range;
  });

const put = fc
  .record({ name, value, lease, prevKv: fc.boolean(), ignoreValue: seldom, ignoreLease: seldom })
  .map(({ name: of, value: text, lease: index, ...rest }) => (place: Place): Put => {
    const id = index === undefined || rest.ignoreLease ? 0n : place.leaseId(index);
    return { ...rest, key: place.key(of), value: bytes(rest.ignoreValue ? '' : text), lease: id };
  });

const deleteRange = fc
  .record({ keys: keyRange, prevKv: fc.boolean() })
  .map(({ keys, prevKv }) => (place: Place): Delete => ({ ...keys(place), prevKv }));

const compare = fc
  .record({
    keys: keyRange,
    result: fc.constantFrom(0, 1, 2, 3),
    target: fc.constantFrom(0, 1, 2, 3, 4),
    count: fc.integer({ min: 0, max: 3 }),
    offset: fc.integer({ min: 0, max: 20 }),
    value,
  })
  .map(({ keys, result, target, count, offset, value: text }) => (place: Place): CompareInit => {
    const at = place.baseRevision + BigInt(offset);
    const unions = [
      { case: 'version', value: BigInt(count) },
      { case: 'createRevision', value: offset === 0 ? 0n : at },
      { case: 'modRevision', value: offset === 0 ? 0n : at },
      { case: 'value', value: bytes(text) },
      { case: 'lease', value: count === 0 ? 0n : place.leaseId(count) },
    ] as const;
    return { ...keys(place), result, target, targetUnion: unions[target] ?? { case: undefined } } as CompareInit;
  });

type Made<T> = (place: Place) => T;

const { txn } = fc.letrec<{ txn: Made<Txn>; op: Made<Op> }>((tie) => ({
  txn: fc
    .record({
      compare: fc.array(compare, { maxLength: 3 }),
      success: fc.array(tie('op'), { maxLength: 3 }),
      failure: fc.array(tie('op'), { maxLength: 3 }),
    })
    .map((parts) => (place: Place): Txn => ({
      compare: parts.compare.map((make) => make(place)),
      success: parts.success.map((make) => make(place)),
      failure: parts.failure.map((make) => make(place)),
    })),
  op: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    {
      weight: 3,
      arbitrary: put.map((make) => (place: Place): Op => ({ request: { case: 'requestPut', value: make(place) } })),
    },
    {
      weight: 3,
      arbitrary: range.map((make) => (place: Place): Op => ({ request: { case: 'requestRange', value: make(place) } })),
    },
    {
      weight: 1,
      arbitrary: deleteRange.map((make) => (place: Place): Op => ({
        request: { case: 'requestDeleteRange', value: make(place) },
      })),
    },
    {
      weight: 2,
      arbitrary: tie('txn').map((make) => (place: Place): Op => ({
        request: { case: 'requestTxn', value: make(place) },
      })),
    },
  ),
}));

const watch = fc
  .record({
    from: name,
    offset: fc.oneof(fc.constant(undefined), fc.integer({ min: -3, max: 30 })),
    filter: fc.constantFrom(undefined, undefined, 0, 1),
    prevKv: fc.boolean(),
  })
  .map(({ from, offset, filter, prevKv }) => (place: Place) => ({
    ...keyRangeFrom(place, from),
    // The first runs would name revisions below the first one, which etcd 3.4 does not refuse.
    startRevision: revisionAt(place, offset) < 0n ? 0n : revisionAt(place, offset),
    filters: filter === undefined ? [] : [filter as 0 | 1],
    prevKv,
  }));

const leaseIndex = fc.nat(leaseCount - 1);
const leaseTtlSeconds = 1000n;

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 10, arbitrary: put.map((make): Operation => ({ call: 'put', make })) },
  { weight: 10, arbitrary: range.map((make): Operation => ({ call: 'range', make })) },
  { weight: 2, arbitrary: watch.map((make): Operation => ({ call: 'watch', make })) },
  { weight: 4, arbitrary: deleteRange.map((make): Operation => ({ call: 'deleteRange', make })) },
  { weight: 10, arbitrary: txn.map((make): Operation => ({ call: 'txn', make })) },
  {
    weight: 1,
    arbitrary: fc.tuple(revision, fc.boolean()).map(([offset, physical]): Operation => ({
      call: 'compact',
      make: (place) => ({ revision: revisionAt(place, offset), physical }),
    })),
  },
  {
    weight: 6,
    arbitrary: leaseIndex.map((index): Operation => ({
      call: 'leaseGrant',
      make: (place) => ({ ID: place.leaseId(index), TTL: leaseTtlSeconds }),
    })),
  },
  {
    weight: 3,
    arbitrary: leaseIndex.map((index): Operation => ({
      call: 'leaseRevoke',
      make: (place) => ({ ID: place.leaseId(index) }),
    })),
  },
  {
    weight: 3,
    arbitrary: leaseIndex.map((index): Operation => ({
      call: 'leaseTimeToLive',
      make: (place) => ({ ID: place.leaseId(index), keys: true }),
    })),
  },
  {
    weight: 2,
    arbitrary: leaseIndex.map((index): Operation => ({
      call: 'keepAlive',
      make: (place) => ({ ID: place.leaseId(index) }),
    })),
  },
);

/** The calls of one client, one after the other. */
export const history: fc.Arbitrary<Operation[]> = fc.array(operation, { minLength: 5, maxLength: 60, size: 'max' });
