import { EpochEnds } from '../packages/core/src/lease/epoch-ends.ts';
import { LeaseCollection } from '../packages/core/src/lease/lease-collection.ts';
import { ClusterClock } from '../packages/server/src/leases/cluster-clock.ts';
import { LeaderLeaseTracker } from '../packages/server/src/leases/leader-lease-tracker.ts';
import { LeaderTerm } from '../packages/server/src/election/leader-term.ts';
import { Right } from '../packages/server/src/election/right.ts';
import { Leadership } from '../packages/server/src/election/leadership.ts';
import { Cluster, type Omissions } from './cluster.ts';

/** One rule broken on purpose, to see whether the simulation notices. */
export interface Mutation {
  readonly name: string;
  /** A seed that notices it: where the simulation changes, one that comes soon behind this one. */
  readonly foundAt: number;
  /** The rule that it breaks. */
  readonly rule: string;
  readonly omissions?: Omissions;
  /** Breaks the code under test, and returns what repairs it. */
  readonly apply?: () => () => void;
}

/**
 * Here what a follower has applied is all that keeps a renewal from being answered by a leader that knows less: each
 * client uses one server only, so that all it was told of is applied there.
 */
export const followerIndexAlone: Omissions = { roaming: true, appendOut: true };

export const mutations: readonly Mutation[] = [
  {
    name: 'the right to lead never lapses',
    rule: 'L8',
    foundAt: 1,
    apply: () => replaceMethod(Right.prototype, 'holds', () => true),
  },
  {
    name: 'an expiry does not look at renewIndex',
    rule: 'L1',
    foundAt: 100,
    apply: () => {
      const remove = methodOf(LeaseCollection.prototype, 'remove');
      return replaceMethod(LeaseCollection.prototype, 'remove', function remover(this: LeaseCollection, id, _, orphan) {
        return remove.call(this, id, undefined, orphan);
      });
    },
  },
  { name: 'the wall clock is not part of the right', rule: 'L8', foundAt: 1, omissions: { wallClock: true } },
  {
    name: 'a lease is dated by the last change of leader, not by the one that ended its epoch',
    rule: 'L6',
    foundAt: 2,
    apply: dateByLastChange,
  },
  {
    // The append that is out covers it (docs/decisions/013), so that this guard has to be taken away first.
    name: 'renewals do not heed what the follower has applied, where no other guard stands before it',
    rule: 'L3',
    foundAt: 8,
    omissions: { ...followerIndexAlone, followerIndex: true },
  },
  {
    name: 'renewals heed neither what the follower has applied nor the append that is out',
    rule: 'L3',
    foundAt: 12,
    omissions: { followerIndex: true, appendOut: true },
  },
  { name: 'renewals do not wait for the append that is out', rule: 'L3', foundAt: 40, omissions: { appendOut: true } },
  {
    name: 'a leader that has handed on the lead still answers renewals',
    rule: 'L8',
    foundAt: 1_490,
    apply: () => replaceMethod(LeaderTerm.prototype, 'mayActAlone', methodOf(LeaderTerm.prototype, 'mayAct')),
  },
  {
    name: 'a renewal that went through the log is acknowledged without a look at the right',
    rule: 'L8',
    foundAt: 694,
    apply: () => {
      return replaceMethod(Leadership.prototype, 'renew', function renewer(this: Leadership, id) {
        return this.keeper?.renew(id);
      });
    },
  },
  {
    name: 'an expiry that a change of leader cut short is never tried again',
    rule: 'L11',
    foundAt: 52,
    apply: expireOnce,
  },
  {
    name: 'the time that an epoch has lasted is lost with its leader',
    rule: 'L11',
    foundAt: 6,
    apply: () => replaceMethod(ClusterClock.prototype, 'nowMs', () => 0),
  },
];

/** Whichever leader proposes the expiry of a lease, no leader proposes it again. */
function expireOnce(): () => void {
  const proposed = new Set<string>();
  const start = methodOf(Cluster.prototype, 'start');
  const repairStart = replaceMethod(Cluster.prototype, 'start', function starter(this: Cluster) {
    proposed.clear();
    start.call(this);
  });
  const takeDue = methodOf(LeaderLeaseTracker.prototype, 'takeDue');
  const repairDue = replaceMethod(
    LeaderLeaseTracker.prototype,
    'takeDue',
    function taker(this: LeaderLeaseTracker, nowMs, maxDates) {
      const due = takeDue.call(this, nowMs, maxDates);
      const expire = due.expire.filter(({ id, renewIndex }) => !proposed.has(`${id} ${renewIndex}`));
      for (const { id, renewIndex } of expire) proposed.add(`${id} ${renewIndex}`);
      return { ...due, expire };
    },
  );
  return () => {
    repairStart();
    repairDue();
  };
}

function dateByLastChange(): () => void {
  const last = new WeakMap<EpochEnds, { epoch: number; endMs: number }>();
  const begin = methodOf(EpochEnds.prototype, 'begin');
  const repairBegin = replaceMethod(EpochEnds.prototype, 'begin', function beginner(this: EpochEnds, epoch, timeMs) {
    last.set(this, { epoch, endMs: timeMs });
    begin.call(this, epoch, timeMs);
  });
  const deadlineOf = methodOf(LeaseCollection.prototype, 'deadlineOf');
  const repairDates = replaceMethod(
    LeaseCollection.prototype,
    'deadlineOf',
    function dater(this: LeaseCollection, lease) {
      const dateMs = deadlineOf.call(this, lease);
      const change = last.get(this.epochEnds);
      if (dateMs === undefined || lease.deadlineMs !== undefined || change === undefined) return dateMs;
      return change.endMs + lease.ttlMs;
    },
  );
  return () => {
    repairBegin();
    repairDates();
  };
}

function replaceMethod<T, K extends keyof T>(prototype: T, name: K, method: T[K]): () => void {
  const original = prototype[name];
  prototype[name] = method;
  return () => {
    prototype[name] = original;
  };
}

function methodOf<T, K extends keyof T>(prototype: T, name: K): T[K] {
  return prototype[name];
}
