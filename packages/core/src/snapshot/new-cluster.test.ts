import { expect, test } from 'vitest';
import type { Command } from '../state-machine/command.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import type { NewCluster } from './new-cluster.ts';
import { SnapshotReader } from './snapshot-reader.ts';

const identity = { clusterId: 9n, secret: 'new' };

class Log {
  readonly state = new StateMachine();

  append(timeMs: number, epoch: number, ...commands: Command[]): void {
    this.state.apply({ index: this.state.appliedIndex + 1, epoch, timeMs, commands });
  }

  restored(cluster: NewCluster): StateMachine {
    const reader = new SnapshotReader();
    const writer = this.state.snapshotForEngine();
    for (let step = writer.next(); step.done !== true; step = writer.next()) reader.push(step.value);
    return reader.finish(cluster);
  }
}

/**
 * Leases 1 (in-memory deadline), 2 (checkpointed at 30 s) and 3 (in memory in an epoch that ended at 20 s), of 10 s
 * each.
 */
function written(): Log {
  const log = new Log();
  const grant = (id: bigint): Command => ({ kind: 'leaseGrant', id, ttlMs: 10_000, label: '' });
  log.append(0, 0, { kind: 'createCluster', clusterId: 1n, secret: 'old' });
  log.append(0, 0, { kind: 'registerMember', id: 5n, name: 'gone', clientUrls: ['http://gone:1'] });
  log.append(0, 0, { kind: 'claim', epoch: 1, leader: '5/1', leaderLeaseMs: 800 });
  log.append(10_000, 1, grant(3n));
  log.append(20_000, 1, { kind: 'heartbeat' });
  log.append(20_000, 2, { kind: 'claim', epoch: 2, leader: '5/2', leaderLeaseMs: 800 });
  log.append(21_000, 2, grant(1n), grant(2n));
  log.append(25_000, 2, { kind: 'checkpointLeases', leases: [{ id: 2n, renewIndex: 7, deadlineMs: 30_000 }] });
  log.append(25_000, 2, { kind: 'alarm', action: 'activate', memberId: 5n, alarm: 'nospace' });
  return log;
}

function deadlines(state: StateMachine): (number | undefined)[] {
  return [...state.leases()].map((lease) => state.deadlineOf(lease));
}

test('a restored cluster has no servers yet, and continues from the revision, epoch and time', () => {
  const log = written();
  const restored = log.restored({ ...identity, isFinal: true });
  const { clusterId, secret, leader, leaderLeaseMs, members, successor } = restored;
  const none = { leader: '', leaderLeaseMs: 0, members: [], successor: 0n };
  expect({ clusterId, secret, leader, leaderLeaseMs, members, successor }).toEqual({ ...identity, ...none });
  const kept = ({ epoch, clusterTimeMs, appliedIndex, currentRevision, alarms }: StateMachine): object => {
    return { epoch, clusterTimeMs, appliedIndex, currentRevision, alarms };
  };
  expect(kept(restored)).toEqual(kept(log.state));
});

test('the first claim sets the lease deadlines as a change of leader does', () => {
  const log = written();
  const restored = log.restored({ ...identity, isFinal: true });
  expect(deadlines(restored)).toEqual([undefined, 30_000, 30_000]);
  const claim: Command = { kind: 'claim', epoch: 3, leader: '6/1', leaderLeaseMs: 800 };
  restored.apply({ index: 10, epoch: 3, timeMs: 25_000, commands: [claim] });
  log.append(25_000, 3, claim);
  expect(deadlines(restored)).toEqual([35_000, 30_000, 30_000]);
  expect(deadlines(restored)).toEqual(deadlines(log.state));
});

test('after a snapshot that is not final every lease has its full TTL', () => {
  const restored = written().restored({ ...identity, isFinal: false });
  const claim: Command = { kind: 'claim', epoch: 3, leader: '6/1', leaderLeaseMs: 800 };
  restored.apply({ index: 10, epoch: 3, timeMs: 25_000, commands: [claim] });
  expect(deadlines(restored)).toEqual([35_000, 35_000, 35_000]);
});
