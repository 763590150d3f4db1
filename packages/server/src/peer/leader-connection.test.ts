import type { Command } from '@tenure/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { encodeCommand } from '../replica/command-codec.ts';
import { LeaderConnection } from './leader-connection.ts';
import { LeadingServer } from './testing/leading-server.ts';

const patience = { timeout: 20_000, interval: 20 };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('what a follower hands to the leader in one turn', () => {
  test('travels in as many messages as the leader takes, however much it is', async () => {
    const server = await LeadingServer.start([2n]);
    cleanups.push(() => server.close());
    const { clusterId, epoch, secret } = server.replica.state;
    const renewed = new Set<bigint>();
    let ended: string | undefined;
    const connection = await new Promise<LeaderConnection>((resolve) => {
      const begun = new LeaderConnection({
        address: server.address,
        epoch,
        memberId: 2n,
        run: 5,
        leader: server.leader,
        clusterId,
        secret,
        appliedIndex: () => 0,
        onWelcome: resolve,
        onRenewed: (id) => renewed.add(id),
        onReturned: () => {},
        onRefused: () => {},
        onAppended: () => {},
        onView: () => {},
        onClosed: (_, { details }) => (ended = details),
      });
      cleanups.push(() => begun.close());
    });
    const value = 'x'.repeat(100_000);
    for (let sequence = 1; sequence <= 60; sequence += 1) {
      const put = { key: `key ${sequence}`, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
      const command: Command = { kind: 'put', put };
      const encoded = { ...encodeCommand(command), origin: { run: 5, sequence } };
      connection.propose({ command, encoded, expiresMs: 0, epoch, resolve: () => {}, reject: () => {} });
    }
    const firstId = 2n ** 62n;
    const leases = 300_000n;
    for (let id = 0n; id < leases; id += 1n) connection.renew(firstId + id);
    await vi.waitFor(() => expect({ ended, keys: server.replica.state.keyCount }).toEqual({ keys: 60 }), patience);
    await vi.waitFor(() => expect({ ended, renewed: renewed.size }).toEqual({ renewed: Number(leases) }), patience);
  });
});
