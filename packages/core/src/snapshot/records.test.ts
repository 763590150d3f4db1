import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { SnapshotReader } from './snapshot-reader.ts';

const largestId = 2n ** 64n - 1n;

describe('the records of a snapshot', () => {
  test('keep ids of clusters and members as unsigned numbers: half of all random ones are above 2^63', () => {
    const state = new StateMachine();
    const member = { id: largestId, name: 'm', clientUrls: ['http://127.0.0.1:2379'] };
    state.apply({
      index: 1,
      epoch: 0,
      timeMs: 0,
      commands: [
        { kind: 'createCluster', clusterId: largestId - 1n, secret: 's' },
        { kind: 'registerMember', ...member },
        { kind: 'alarm', action: 'activate', memberId: largestId, alarm: 'nospace' },
      ],
    });
    const reader = new SnapshotReader();
    for (const chunk of state.snapshotForEngine()) reader.push(chunk);
    const restored = reader.finish();
    expect(restored.clusterId).toBe(largestId - 1n);
    expect(restored.members).toEqual([member]);
    expect(restored.alarms).toEqual([{ memberId: largestId, alarm: 'nospace' }]);
  });

  test('contain the secret only for the engine; without it, bytes and hash do not depend on the secret', () => {
    const withSecret = (secret: string): StateMachine => {
      const state = new StateMachine();
      const created = { kind: 'createCluster', clusterId: 1n, secret } as const;
      state.apply({ index: 1, epoch: 0, timeMs: 0, commands: [created] });
      return state;
    };
    const [one, other] = [withSecret('known to the servers'), withSecret('another')];
    const all = (writer: Iterable<Uint8Array>): Buffer => Buffer.concat([...writer]);
    expect(all(one.snapshotForEngine()).includes('known to the servers')).toBe(true);
    expect(all(one.snapshot())).toEqual(all(other.snapshot()));
    expect(one.stateHash()).not.toBe(other.stateHash());
  });
});
