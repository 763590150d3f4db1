import { type AuthChange, type Command, type RequestOp, type Requester, StateMachine } from '@tenure/core';
import { encodeTxnRequest, frameHeadroomBytes, responseHeaderPrefix } from '@tenure/codec';
import { expect, test } from 'vitest';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { systemClock } from '../time/system-clock.ts';
import { testConnection } from '@tenure/test-support';
import { CommandRules } from './command-rules.ts';
import { KvService } from './kv-service.ts';
import { LongReplies } from './long-replies.ts';
import { type Caller, SlicedWork } from './sliced-work.ts';

const users: readonly AuthChange[] = [
  { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: 'root', role: 'root' },
  { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
  { kind: 'addRole', role: 'r' },
  { kind: 'grantRole', user: 'ann', role: 'r' },
  { kind: 'enable' },
];

/** A server that has not applied yet, until it is asked to catch up, that ann may read and write from "k" on. */
class LateServer {
  readonly state = new StateMachine();
  readonly proposed: Command[] = [];
  readonly kv: KvService;
  #index = 0;

  constructor(keys: number) {
    const put = (at: number): Command => ({ kind: 'put', put: putOf(`k${at}`) });
    this.#apply(Array.from({ length: keys }, (_, at) => put(at)));
    this.#apply(users.map((change) => ({ kind: 'auth', change })));
    const { state } = this;
    const replica: ReplicaAccess = {
      state,
      position: { index: 0, hash: '' },
      propose: (command) => {
        this.proposed.push(command);
        return Promise.resolve({ kind: 'txn', txn: { succeeded: true, responses: [] }, revision: 2 });
      },
      linearize: () => {
        const permission = { type: 'readWrite', key: 'k', rangeEnd: '\0' } as const;
        const by: Requester = { user: 'root', authRevision: state.auth.revision };
        this.#apply([{ kind: 'auth', change: { kind: 'grantPermission', role: 'r', permission }, by }]);
        return Promise.resolve();
      },
    };
    this.kv = new KvService({
      replica,
      identity: { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) },
      rules: new CommandRules({
        state: () => state,
        quota: { admit: () => undefined },
        maxRequestBytes: 1024,
        maxTxnOps: 8,
        canAllApply: () => true,
      }),
      longReplies: new LongReplies(new SlicedWork(systemClock)),
    });
  }

  async txn(user: string, ...success: readonly RequestOp[]): Promise<void> {
    const request = encodeTxnRequest({ compare: [], success, failure: [] }).subarray(frameHeadroomBytes);
    const { signal } = new AbortController();
    const requester: Requester = { user, authRevision: this.state.auth.revision };
    const caller: Caller = { connection: testConnection(), signal, requester };
    await this.kv.txn(request, caller);
  }

  #apply(commands: readonly Command[]): void {
    this.#index += 1;
    this.state.apply({ index: this.#index, epoch: 0, timeMs: 0, commands });
  }
}

function putOf(key: string) {
  return { key, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
}
const putOp: RequestOp = { kind: 'put', put: putOf('k0') };
const deleteOp: RequestOp = { kind: 'deleteRange', deleteRange: { key: 'k1', rangeEnd: 'l', prevKv: false } };

test('a permission that this server has not applied yet allows a transaction, as apply decides', async () => {
  const server = new LateServer(10);
  await server.txn('ann', putOp);
  expect(server.proposed).toMatchObject([{ kind: 'txn', by: { user: 'ann' } }]);
});

test('a long transaction is checked before its scan, by auth data that is not older than the request', async () => {
  const server = new LateServer(5_000);
  await server.txn('ann', putOp, deleteOp);
  expect(server.proposed).toHaveLength(1);
  await expect(server.txn('bob', putOp, deleteOp)).rejects.toThrow('etcdserver: permission denied');
  expect(server.proposed).toHaveLength(1);
});
