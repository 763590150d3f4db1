import { encodeFramed, responseHeaderPrefix } from '@tenure/codec';
import { type Command, StateMachine } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemRandom } from '../random/system-random.ts';
import { decodeCommand, encodeCommand } from '../replica/command-codec.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { systemClock } from '../time/system-clock.ts';
import { CommandRules } from './command-rules.ts';
import { LeaseService } from './lease-service.ts';
import { LongReplies } from './long-replies.ts';
import { QuotaGuard } from './quota-guard.ts';
import { SlicedWork } from './sliced-work.ts';

test('a grant of any TTL can be written to the log and read back', async () => {
  let proposed: Command | undefined;
  const state = new StateMachine();
  const replica: ReplicaAccess = {
    state,
    position: { index: 0, hash: '' },
    propose: (command) => {
      proposed = command;
      return Promise.resolve({ kind: 'error', code: 'LeaseTtlTooLarge' });
    },
    linearize: () => undefined,
  };
  const service = new LeaseService({
    random: systemRandom,
    replica,
    renewals: { renew: () => Promise.resolve(0), revision: () => 1 },
    lessor: () => {
      throw new Error('this server does not lead');
    },
    identity: { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) },
    rules: new CommandRules({
      state: () => state,
      quota: new QuotaGuard(replica, 2 ** 30, 2n),
      maxRequestBytes: 1024,
      maxTxnOps: 1,
      canAllApply: () => true,
    }),
    longReplies: new LongReplies(new SlicedWork(systemClock)),
    minLeaseTtlMs: 1,
  });
  const int64 = fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.constant(2n ** 63n - 1n), fc.constant(0n));
  await fc.assert(
    fc.asyncProperty(int64, int64, async (TTL, TTLMs) => {
      const request = encodeFramed(etcdserverpb.LeaseGrantRequestSchema, { TTL, TTLMs, ID: 7n }).subarray(5);
      proposed = undefined;
      await expect(service.grant(request, {})).rejects.toMatchObject({ code: 11 });
      if (proposed === undefined) throw new Error('nothing was proposed');
      expect(decodeCommand(encodeCommand(proposed))).toEqual(proposed);
    }),
  );
});
