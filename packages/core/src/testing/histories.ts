import fc from 'fast-check';
import type { Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from '../mvcc/kv-types.ts';
import type { Command } from '../state-machine/command.ts';
import type { Entry } from '../state-machine/entry.ts';
import type { NaiveModel } from './naive-model.ts';

/** Few keys, so that they repeat; among them a prefix of another, the smallest, and one beyond ASCII. */
const key = fc.constantFrom('a', 'ab', 'b', 'c', '\0', 'd\xff', '\xff');
const rangeEnd = fc.constantFrom('', '', '\0', 'b', 'c', '\xff', 'a\0');
const value = fc.constantFrom('', '1', '2', 'three', '\xfe');
const leaseId = fc.constantFrom(1n, 2n, -3n, 0x7fffffffffffffffn);
const leaseOrNone = fc.oneof({ weight: 2, arbitrary: fc.constant(0n) }, { weight: 1, arbitrary: leaseId });
const smallRevision = fc.integer({ min: 0, max: 12 });
/** Mostly no filter. */
const filter = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: smallRevision });

export const rangeOptions: fc.Arbitrary<RangeRequest> = fc.record({
  key,
  rangeEnd,
  limit: fc.integer({ min: -1, max: 4 }),
  revision: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: -1, max: 30 }) },
  ),
  sortOrder: fc.integer({ min: 0, max: 2 }),
  sortTarget: fc.integer({ min: 0, max: 4 }),
  serializable: fc.boolean(),
  keysOnly: fc.boolean(),
  countOnly: fc.boolean(),
  minModRevision: filter,
  maxModRevision: filter,
  minCreateRevision: filter,
  maxCreateRevision: filter,
});

const put: fc.Arbitrary<PutRequest> = fc
  .record({
    key,
    value,
    lease: leaseOrNone,
    prevKv: fc.boolean(),
    ignoreValue: fc.boolean(),
    ignoreLease: fc.boolean(),
  })
  .map((request) => ({ ...request, lease: request.ignoreLease ? 0n : request.lease }));

const deleteRange: fc.Arbitrary<DeleteRangeRequest> = fc.record({ key, rangeEnd, prevKv: fc.boolean() });

const compare: fc.Arbitrary<Compare> = fc.record({
  result: fc.integer({ min: 0, max: 3 }),
  target: fc.integer({ min: 0, max: 4 }),
  key,
  rangeEnd,
  number: fc.integer({ min: 0, max: 6 }),
  value,
  lease: leaseOrNone,
});

/** Also transactions that the API layer refuses: keys may be written twice. */
const txn: fc.Arbitrary<TxnRequest> = fc.letrec<{ txn: TxnRequest; op: RequestOp }>((tie) => ({
  txn: fc.record({
    compare: fc.array(compare, { maxLength: 2 }),
    success: fc.array(tie('op'), { maxLength: 3 }),
    failure: fc.array(tie('op'), { maxLength: 3 }),
  }),
  op: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 5, arbitrary: put.map((request): RequestOp => ({ kind: 'put', put: request })) },
    { weight: 3, arbitrary: rangeOptions.map((request): RequestOp => ({ kind: 'range', range: request })) },
    { weight: 3, arbitrary: deleteRange.map((request): RequestOp => ({ kind: 'deleteRange', deleteRange: request })) },
    { weight: 3, arbitrary: tie('txn').map((request): RequestOp => ({ kind: 'txn', txn: request })) },
  ),
})).txn;

/** The commands of clients whose permission depends on keys. */
export const keyCommand: fc.Arbitrary<Command> = fc.oneof(
  put.map((request): Command => ({ kind: 'put', put: request })),
  deleteRange.map((request): Command => ({ kind: 'deleteRange', deleteRange: request })),
  txn.map((request): Command => ({ kind: 'txn', txn: request })),
  leaseId.map((id): Command => ({ kind: 'leaseGrant', id, ttlMs: 1000, label: '' })),
  leaseId.map((id): Command => ({ kind: 'leaseRevoke', id })),
);

/** A command, or a function that makes one from the state: it picks the current revision, renewIndex or epoch. */
type Intent =
  | Command
  | { readonly kind: 'compactBack'; readonly back: number }
  | { readonly kind: 'expire' | 'checkpoint'; readonly named: readonly Named[] }
  | { readonly kind: 'claimNext'; readonly skip: number };

/** A lease with its renewIndex, or with one that is off by this number. */
interface Named {
  readonly id: bigint;
  readonly off: number;
}

const grant = fc.record({
  id: leaseId,
  ttlMs: fc.constantFrom(1, 1000, 9e12, 9e12 + 1),
  label: fc.constantFrom('', 'é✓'),
});

const named: fc.Arbitrary<Named[]> = fc.array(fc.record({ id: leaseId, off: fc.constantFrom(0, 0, 0, 1) }), {
  maxLength: 3,
});

const intent: fc.Arbitrary<Intent> = fc.oneof(
  { weight: 10, arbitrary: put.map((request): Intent => ({ kind: 'put', put: request })) },
  { weight: 4, arbitrary: deleteRange.map((request): Intent => ({ kind: 'deleteRange', deleteRange: request })) },
  { weight: 5, arbitrary: txn.map((request): Intent => ({ kind: 'txn', txn: request })) },
  // Counted back from the newest revision, so that most of them are valid.
  { weight: 2, arbitrary: fc.integer({ min: -1, max: 6 }).map((back): Intent => ({ kind: 'compactBack', back })) },
  { weight: 5, arbitrary: grant.map((request): Intent => ({ kind: 'leaseGrant', ...request })) },
  { weight: 2, arbitrary: leaseId.map((id): Intent => ({ kind: 'leaseRevoke', id })) },
  { weight: 2, arbitrary: named.map((leases): Intent => ({ kind: 'expire', named: leases })) },
  { weight: 3, arbitrary: named.map((leases): Intent => ({ kind: 'checkpoint', named: leases })) },
  {
    weight: 3,
    arbitrary: fc.array(leaseId, { maxLength: 3 }).map((ids): Intent => ({ kind: 'renewLeases', ids })),
  },
  { weight: 2, arbitrary: fc.constantFrom(0, 0, 0, 1).map((skip): Intent => ({ kind: 'claimNext', skip })) },
  { weight: 1, arbitrary: fc.constant<Intent>({ kind: 'heartbeat' }) },
);

/** One entry, and actions on the machine before it that must have no observable effect. */
export interface Step {
  readonly intents: readonly Intent[];
  readonly elapsedMs: number;
  /** Written by a leader of the previous epoch. */
  readonly stale: boolean;
  readonly collectSteps: number;
  /** The number of chunks of an open snapshot that are read before it. */
  readonly chunks: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  intents: fc.array(intent, { minLength: 1, maxLength: 3 }),
  elapsedMs: fc.integer({ min: -2, max: 50 }),
  stale: fc.integer({ min: 0, max: 19 }).map((n) => n === 19),
  collectSteps: fc.constantFrom(0, 0, 1, 3, 100),
  chunks: fc.integer({ min: 0, max: 2 }),
});

export function entryOf(one: Step, model: NaiveModel): Entry {
  return {
    index: model.appliedIndex + 1,
    epoch: one.stale ? model.epoch - 1 : model.epoch,
    timeMs: model.clusterTimeMs + one.elapsedMs,
    commands: one.intents.map((each) => commandOf(each, model)),
  };
}

function commandOf(one: Intent, model: NaiveModel): Command {
  const renewIndexOf = ({ id, off }: Named): number => (model.leases.get(id)?.renewIndex ?? 1) + off;
  switch (one.kind) {
    case 'compactBack':
      return { kind: 'compact', revision: model.currentRevision - one.back };
    case 'expire':
      return {
        kind: 'expireLeases',
        leases: one.named.map((lease) => ({ id: lease.id, renewIndex: renewIndexOf(lease) })),
      };
    case 'checkpoint': {
      const deadlineMs = model.clusterTimeMs + 5;
      return {
        kind: 'checkpointLeases',
        leases: one.named.map((lease) => ({ id: lease.id, renewIndex: renewIndexOf(lease), deadlineMs })),
      };
    }
    case 'claimNext':
      return { kind: 'claim', epoch: model.epoch + 1 + one.skip, leader: `leader-${model.epoch}`, leaderLeaseMs: 800 };
    default:
      return one;
  }
}

export const history: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 1, maxLength: 30, size: 'max' });
