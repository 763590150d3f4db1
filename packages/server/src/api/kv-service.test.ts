import { create, toBinary } from '@bufbuild/protobuf';
import { type AuthChange, type Command, type CommandResponse, StateMachine } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { responseHeaderPrefix } from '@tenure/codec';
import { expect, test } from 'vitest';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { systemClock } from '../time/system-clock.ts';
import { testConnection } from '../transport/testing/test-connection.ts';
import { CommandRules } from './command-rules.ts';
import { KvService } from './kv-service.ts';
import { LongReplies } from './long-replies.ts';
import { QuotaGuard } from './quota-guard.ts';
import { SlicedWork } from './sliced-work.ts';

const granted: AuthChange = {
  kind: 'grantPermission',
  role: 'r',
  permission: { type: 'readWrite', key: 'a', rangeEnd: '' },
};
const setUp: readonly AuthChange[] = [
  { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: 'root', role: 'root' },
  { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
  { kind: 'addRole', role: 'r' },
  { kind: 'grantRole', user: 'ann', role: 'r' },
  { kind: 'enable' },
];

test('a transaction is not refused by permissions from before a grant that was acknowledged elsewhere', async () => {
  const state = new StateMachine();
  const apply = (command: Command): CommandResponse => {
    const entry = { index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [command] };
    return state.apply(entry).responses[0]!;
  };
  for (const change of setUp) apply({ kind: 'auth', change });
  const asRoot = { user: 'root', authRevision: state.auth.revision };
  let isBehindBy: AuthChange | undefined;
  let proposed = 0;
  const replica: ReplicaAccess = {
    state,
    position: { index: 0, hash: '' },
    propose: async (command) => {
      proposed += 1;
      return apply(command);
    },
    linearize: () => {
      const change = isBehindBy;
      isBehindBy = undefined;
      return change && Promise.resolve().then(() => void apply({ kind: 'auth', change, by: asRoot }));
    },
  };
  const identity = { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) };
  const quota = new QuotaGuard(replica, 1024 ** 3, 2n);
  const limits = { maxRequestBytes: 1024, maxTxnOps: 8, knowAllAuth: () => true };
  const rules = new CommandRules({ state: () => state, quota, ...limits });
  const longReplies = new LongReplies(new SlicedWork(systemClock));
  const kv = new KvService({ replica, identity, rules, longReplies });
  const put = { case: 'requestPut', value: { key: Buffer.from('a') } } as const;
  const schema = etcdserverpb.TxnRequestSchema;
  const request = Buffer.from(toBinary(schema, create(schema, { success: [{ request: put }] })));
  const signal = new AbortController().signal;
  const caller = {
    connection: testConnection(),
    signal,
    requester: { user: 'ann', authRevision: state.auth.revision },
  };
  const ask = async (): Promise<unknown> => await kv.txn(request, caller);
  await expect(ask()).rejects.toThrow('etcdserver: permission denied');
  expect(proposed).toBe(0);
  isBehindBy = granted;
  await ask();
  expect(state.currentRevision).toBe(2);
});
