import { StateMachine, type Command } from '@tenure/core';
import { NodeClock, Schedule } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { logStart, nextPosition } from '../../packages/server/src/engines/chain-hash.ts';
import { encodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { Coverage } from '../world/coverage.ts';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { LeaseChecker } from './lease-checker.ts';

const id = 7n;
const ttlMs = 1_000;

/** A log that a test writes, with what servers do besides. The process `first` leads epoch 1. */
class Case {
  readonly schedule = new Schedule();
  readonly first = this.#newProcess();
  readonly second = this.#newProcess();
  /** When the orderly stop of the first process began. */
  closingFromMs = Infinity;
  readonly checker: LeaseChecker;
  readonly #violations = new Violations(this.schedule, new Trace(this.schedule));
  #position = logStart;
  #epoch = 1;
  #writer = this.first;

  constructor() {
    const { schedule } = this;
    this.checker = new LeaseChecker({
      trueMs: () => schedule.nowMs,
      violations: this.#violations,
      coverage: new Coverage(),
      closingMs: () => Math.max(0, schedule.nowMs - this.closingFromMs),
      closingFromMs: (process) => (process === this.first ? this.closingFromMs : Infinity),
    });
    this.append({ kind: 'claim', epoch: 1, leader: 'first', leaderLeaseMs: 800 });
  }

  /** With a lease that is granted at once. */
  static withLease(leaseTtlMs = ttlMs): Case {
    const lease = new Case();
    lease.append({ kind: 'leaseGrant', id, ttlMs: leaseTtlMs, label: '' });
    return lease;
  }

  /** The rules that were violated, each once, in order. */
  get violated(): readonly string[] {
    return [...new Set(this.#violations.all.map((line) => line.slice(0, line.indexOf(' '))))];
  }

  get #renewIndex(): number {
    return this.checker.state.lease(id)?.renewIndex ?? 0;
  }

  /** The leader appends nothing for this time. */
  pass(ms: number): void {
    this.schedule.hold(ms);
  }

  /** The leader appends a heartbeat every 200 ms for this time. */
  lead(ms: number): void {
    const endMs = this.schedule.nowMs + ms;
    while (this.schedule.nowMs < endMs) {
      this.pass(Math.min(200, endMs - this.schedule.nowMs));
      this.append({ kind: 'heartbeat' });
    }
  }

  append(command: Command, epoch = this.#epoch): void {
    const headers = { epoch, timeMs: this.schedule.nowMs };
    const bytes = encodeEntry(headers, [encodeCommand(command)]);
    this.#position = nextPosition(this.#position, bytes);
    const { nowMs: beganMs } = this.schedule;
    this.checker.committed({ position: this.#position, bytes, beganMs, writer: this.#writer });
  }

  renew(epoch = this.#epoch): void {
    this.checker.acknowledged(id, this.schedule.nowMs, epoch, Infinity);
  }

  checkpoint(inMs: number): void {
    const deadlineMs = this.schedule.nowMs + inMs;
    this.append({ kind: 'checkpointLeases', leases: [{ id, renewIndex: this.#renewIndex, deadlineMs }] });
  }

  expire(): void {
    this.append({ kind: 'expireLeases', leases: [{ id, renewIndex: this.#renewIndex }] });
  }

  changeLeader(): void {
    this.#epoch += 1;
    this.#writer = this.#writer === this.first ? this.second : this.first;
    this.append({ kind: 'claim', epoch: this.#epoch, leader: 'next', leaderLeaseMs: 800 });
  }

  /** A server applies an entry of its own that the log does not have at this index. */
  applyElsewhere(index: number): void {
    const state = new StateMachine();
    for (let at = 1; at <= index; at += 1) {
      state.apply({ index: at, epoch: 0, timeMs: 0, commands: [{ kind: 'heartbeat' }] });
    }
    this.checker.applied(state);
  }

  #newProcess(): NodeClock {
    return new NodeClock({ schedule: this.schedule, monotonicRate: 1, wallRate: 1, wallIgnored: false });
  }
}

describe('a good history', () => {
  test('of a lease that is renewed, checkpointed, taken over, renewed by the log and expired', () => {
    const lease = Case.withLease();
    for (let renewal = 0; renewal < 5; renewal += 1) {
      lease.lead(300);
      lease.renew();
    }
    lease.lead(700);
    lease.checkpoint(300);
    lease.changeLeader();
    lease.append({ kind: 'renewLeases', ids: [id] });
    lease.renew();
    lease.lead(700);
    lease.checkpoint(310);
    lease.lead(310);
    lease.expire();
    expect([lease.checker.exists(id), lease.checker.endOf(id)?.cause]).toEqual([false, 'expired']);
    expect(lease.violated).toEqual([]);
  });

  test('of a lease whose deadline was in memory when the leader changed: its TTL begins again', () => {
    const lease = Case.withLease();
    lease.lead(600);
    lease.changeLeader();
    lease.lead(ttlMs + 10);
    lease.expire();
    expect(lease.violated).toEqual([]);
  });

  test('of a leader that was stalled, and then answered what was in its sockets', () => {
    const lease = Case.withLease();
    lease.first.pause();
    lease.pass(900);
    lease.checker.arrived(id, lease.first, () => false);
    lease.pass(600);
    lease.first.resume();
    lease.renew();
    lease.lead(600);
    lease.checkpoint(400);
    lease.lead(410);
    lease.expire();
    expect(lease.violated).toEqual([]);
  });

  test('of a lease that was revoked, and granted again under its id', () => {
    const lease = Case.withLease();
    lease.append({ kind: 'leaseRevoke', id });
    expect(lease.checker.endOf(id)?.cause).toBe('revoked');
    lease.lead(500);
    lease.append({ kind: 'leaseGrant', id, ttlMs, label: '' });
    lease.renew();
    expect([lease.checker.grantedMs(id), lease.violated]).toEqual([500, []]);
  });

  test('of a transfer of leadership', () => {
    const lease = Case.withLease();
    lease.append({ kind: 'resign', target: 2n });
    lease.changeLeader();
    lease.renew();
    lease.lead(100);
    expect(lease.violated).toEqual([]);
  });
});

/** What breaks a rule, after a lease was granted. Each breaks one rule and no other. */
const broken: readonly (readonly [rule: string, what: string, history: (lease: Case) => void])[] = [
  [
    'A3',
    'an entry of an epoch that has ended',
    (lease) => {
      lease.changeLeader();
      lease.append({ kind: 'heartbeat' }, 1);
    },
  ],
  [
    'A3',
    'an entry of a leader after its resignation',
    (lease) => {
      lease.append({ kind: 'resign', target: 2n });
      lease.append({ kind: 'heartbeat' });
    },
  ],
  ['A4', 'an entry that was applied before it was durable', (lease) => lease.applyElsewhere(3)],
  [
    'L1',
    'an expiry by the next leader before the TTL has passed since the last renewal',
    (lease) => {
      lease.lead(500);
      lease.renew();
      lease.changeLeader();
      lease.lead(900);
      lease.expire();
    },
  ],
  [
    'L2',
    'a renewal of a lease that has expired',
    (lease) => {
      lease.lead(1_010);
      lease.expire();
      lease.renew();
    },
  ],
  ['L6', 'a checkpoint behind a whole TTL from now', (lease) => lease.checkpoint(ttlMs + 10)],
  [
    'L6',
    'a checkpoint of the lease that had this id before',
    (lease) => {
      lease.lead(660);
      lease.append({ kind: 'leaseRevoke', id });
      lease.append({ kind: 'leaseGrant', id, ttlMs, label: '' });
      lease.checkpoint(340);
    },
  ],
  [
    'L8',
    'a renewal by a leader after the next one has claimed',
    (lease) => {
      lease.changeLeader();
      lease.renew(1);
    },
  ],
  [
    'L9',
    'a state that differs at an index whose states are compared',
    (lease) => {
      lease.lead(30 * 200);
      lease.applyElsewhere(32);
    },
  ],
  [
    'L10',
    'an expiry while a renewal that had come in time was in the socket',
    (lease) => {
      lease.lead(800);
      lease.checker.arrived(id, lease.first, () => false);
      lease.lead(300);
      lease.expire();
    },
  ],
  [
    'L10',
    'an expiry that counts a stall of the leader',
    (lease) => {
      lease.first.pause();
      lease.pass(1_010);
      lease.first.resume();
      lease.expire();
    },
  ],
  [
    'L10',
    'an expiry of a lease that came due while its leader was stopping',
    (lease) => {
      lease.lead(500);
      lease.closingFromMs = lease.schedule.nowMs;
      lease.lead(510);
      lease.expire();
    },
  ],
];

describe('a broken history', () => {
  test.each(broken)('%s: %s', (rule, _what, history) => {
    const lease = Case.withLease(rule === 'L9' ? 60_000 : ttlMs);
    history(lease);
    expect(lease.violated).toEqual([rule]);
  });

  test('L6: an expiry long after the deadline in the log, in cluster time', () => {
    const lease = Case.withLease();
    lease.lead(700);
    lease.checkpoint(300);
    lease.lead(300 + 1_790);
    const late = Case.withLease();
    late.lead(700);
    late.checkpoint(300);
    late.lead(300 + 1_810);
    for (const each of [lease, late]) each.expire();
    expect([lease.violated, late.violated]).toEqual([[], ['L6']]);
  });

  test('L11: a lease that is neither renewed nor expired, and stalls of its leader do not count', () => {
    const lease = Case.withLease();
    lease.lead(700);
    lease.checkpoint(300);
    lease.first.pause();
    lease.pass(5_000);
    lease.first.resume();
    lease.lead(2_000);
    expect(lease.violated).toEqual([]);
    lease.lead(400);
    expect(lease.violated).toEqual(['L11']);
  });

  test('L11: a checkpoint that is missing, though the lease expires in time', () => {
    const lease = Case.withLease(9_000);
    lease.lead(8_000);
    expect(lease.violated).toEqual([]);
    lease.lead(200);
    expect(lease.violated).toEqual(['L11']);
    lease.lead(810);
    lease.expire();
    expect(lease.violated).toEqual(['L11']);
  });
});

test('the longest time is kept for which a leader ran that wrongly acknowledged a renewal', () => {
  const lease = Case.withLease();
  lease.changeLeader();
  for (const awakeMs of [3, 40, 7]) lease.checker.acknowledged(id, 0, 1, awakeMs);
  expect(lease.checker.wronglyAwakeMs).toBe(40);
});
