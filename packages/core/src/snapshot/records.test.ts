import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext } from '../testing/requests.ts';
import { formatVersion, formatWithLimits, formatWithoutLimits, magic } from './snapshot-format.ts';
import { SnapshotReader } from './snapshot-reader.ts';

const largestId = 2n ** 64n - 1n;

const urls = fc.array(fc.string(), { maxLength: 3 });
const registered = fc.record({ clientUrls: urls, peerUrls: fc.option(urls, { nil: undefined }) });

/** The format of a snapshot, and the state that it restores. */
function restored(state: StateMachine): { readonly format: number; readonly copy: StateMachine } {
  const bytes = Buffer.concat([...state.snapshotForEngine()]);
  const reader = new SnapshotReader();
  reader.push(bytes);
  return { format: bytes.readUInt32LE(magic.length), copy: reader.finish() };
}

describe('the records of a snapshot', () => {
  test('keep the peer URLs of each member, and have the format of earlier versions without any', () => {
    const members = fc.array(registered, { maxLength: 4 });
    fc.assert(
      fc.property(members, fc.boolean(), fc.boolean(), (each, hasLimits, hasUsers) => {
        const state = new StateMachine();
        const limits = { maxRows: 1, maxReplyBytes: 2, maxComparedBytes: 3 };
        if (hasLimits) applyNext(state, { kind: 'setTxnLimits', limits });
        const user = { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false } as const;
        if (hasUsers) applyNext(state, { kind: 'auth', change: user });
        for (const [at, one] of each.entries()) {
          applyNext(state, { kind: 'registerMember', id: BigInt(at), name: `m${at}`, ...one });
        }
        const { format, copy } = restored(state);
        expect(copy.members).toStrictEqual(state.members);
        expect(copy.members.map(({ peerUrls }) => peerUrls ?? [])).toEqual(each.map(({ peerUrls }) => peerUrls ?? []));
        expect([copy.hasTxnLimits, copy.auth.revision]).toEqual([hasLimits, state.auth.revision]);
        const hasPeerUrls = each.some(({ peerUrls = [] }) => peerUrls.length > 0);
        const older = hasUsers ? 3 : hasLimits ? formatWithLimits : formatWithoutLimits;
        expect(format).toBe(hasPeerUrls ? formatVersion : older);
      }),
    );
  });

  test('have the earlier format again when no member has peer URLs any more', () => {
    const state = new StateMachine();
    const member = { kind: 'registerMember', id: 1n, name: 'm', clientUrls: ['http://a:1'] } as const;
    applyNext(state, { ...member, peerUrls: ['http://a:2'] });
    expect(restored(state).format).toBe(formatVersion);
    applyNext(state, member);
    expect(state.members).toStrictEqual([{ id: 1n, name: 'm', clientUrls: ['http://a:1'] }]);
    expect(restored(state).format).toBe(formatWithoutLimits);
  });

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
