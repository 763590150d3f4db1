import { create, toBinary, type DescMethod, type MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb, healthpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { addRole, addUser, rootPassword } from '../cases/accounts.ts';
import { bytes } from '../cases/bytes.ts';
import type { CaseContext } from '../cases/case-context.ts';
import { op, target } from '../cases/txn-parts.ts';

/** Keys from this one, and before `permittedEnd`, are those that the callers' permissions cover. */
export const permittedKey = 'k/';
export const permittedEnd = 'k0';

/** What one call is about. Whatever a request needs is made by root before the call, and removed after it. */
export class Subject {
  readonly root: CaseContext;
  readonly key: Uint8Array<ArrayBuffer>;
  readonly foreignKey: Uint8Array<ArrayBuffer>;
  /** A name that no user and no role has yet. */
  readonly name: string;

  constructor(root: CaseContext, name: string) {
    this.root = root;
    this.name = name;
    this.key = bytes(permittedKey + name);
    this.foreignKey = bytes(`z/${name}`);
  }

  /** A lease with these keys. */
  async leaseWith(...keys: Uint8Array<ArrayBuffer>[]): Promise<bigint> {
    const ID = await this.root.grant();
    for (const key of keys) await this.root.kv.put({ key, lease: ID });
    return ID;
  }

  /** A user and a role of that name, which no caller has. */
  async account(): Promise<string> {
    await addUser(this.root, this.name);
    await addRole(this.root, this.name);
    return this.name;
  }
}

/** The requests of one method, encoded, by what distinguishes them. */
export type Requests = Readonly<Record<string, (subject: Subject) => Promise<Uint8Array>>>;

type Init<M extends DescMethod> = MessageInitShape<M['input']>;
type Build<M extends DescMethod> = (subject: Subject) => Init<M> | Promise<Init<M>>;

const { KV, Watch, Lease, Cluster, Maintenance, Auth, AlarmRequest_AlarmAction: Action, AlarmType } = etcdserverpb;
const { DowngradeRequest_DowngradeAction: Downgrade } = etcdserverpb;
const { Lock } = v3lockpb;
const { Election } = v3electionpb;
const { Health } = healthpb;
const unknownMember = 5n;
const unknownLease = 0x7e57n;

const table = new Map<string, Requests>();

function requests<M extends DescMethod>(method: M, builders: Readonly<Record<string, Build<M>>>): void {
  const built = Object.entries(builders).map(([label, build]) => {
    const encoded = async (subject: Subject): Promise<Uint8Array> =>
      toBinary(method.input, create(method.input, await build(subject)));
    return [label, encoded] as const;
  });
  table.set(`/${method.parent.typeName}/${method.name}`, Object.fromEntries(built));
}

const oneKey = { 'a key': ({ key }: Subject) => ({ key }), 'a foreign key': (s: Subject) => ({ key: s.foreignKey }) };

requests(KV.method.range, {
  ...oneKey,
  'no key': () => ({}),
  'a range beyond': ({ key, foreignKey }) => ({ key, rangeEnd: foreignKey }),
  'a foreign key, serializable': ({ foreignKey }) => ({ key: foreignKey, serializable: true }),
});
requests(KV.method.put, {
  ...oneKey,
  'no key': () => ({}),
  'the previous value': ({ key }) => ({ key, prevKv: true }),
  'a lease with a foreign key': async (s) => ({ key: s.key, lease: await s.leaseWith(s.foreignKey) }),
  'an unknown lease': ({ key }) => ({ key, lease: unknownLease }),
});
requests(KV.method.deleteRange, {
  ...oneKey,
  'the previous value': ({ key }) => ({ key, prevKv: true }),
  'a range beyond': ({ key, foreignKey }) => ({ key, rangeEnd: foreignKey }),
});
requests(KV.method.txn, {
  nothing: () => ({}),
  'a comparison': ({ key }) => ({ compare: [{ key, ...target.version(0n) }] }),
  'a put': ({ key }) => ({ success: [op.put({ key })] }),
  'a foreign put in the branch not taken': ({ key, foreignKey }) => ({
    success: [op.put({ key })],
    failure: [op.put({ key: foreignKey })],
  }),
});
requests(KV.method.compact, { 'revision 1': () => ({ revision: 1n }) });
const createWatch = (key: Uint8Array<ArrayBuffer>): Init<typeof Watch.method.watch> => ({
  requestUnion: { case: 'createRequest', value: { key } },
});
requests(Watch.method.watch, {
  'a key': ({ key }) => createWatch(key),
  'a foreign key': ({ foreignKey }) => createWatch(foreignKey),
});
requests(Lease.method.leaseGrant, { 'any lease': () => ({ TTL: 60n }) });
const lease = {
  'a lease without keys': async (s: Subject) => ({ ID: await s.leaseWith() }),
  'a lease with a key': async (s: Subject) => ({ ID: await s.leaseWith(s.key) }),
  'a lease with a foreign key': async (s: Subject) => ({ ID: await s.leaseWith(s.key, s.foreignKey) }),
  'an unknown lease': () => ({ ID: unknownLease }),
};
requests(Lease.method.leaseRevoke, lease);
requests(Lease.method.leaseKeepAlive, lease);
requests(Lease.method.leaseTimeToLive, {
  'a lease with a foreign key': lease['a lease with a foreign key'],
  'the keys of a lease with a key': async (s) => ({ ID: await s.leaseWith(s.key), keys: true }),
  'the keys of a lease with a foreign key': async (s) => ({ ID: await s.leaseWith(s.foreignKey), keys: true }),
});
requests(Lease.method.leaseLeases, {
  'a lease with a key': async (s) => {
    await s.leaseWith(s.key);
    return {};
  },
  'a lease with a foreign key': async (s) => {
    await s.leaseWith(s.foreignKey);
    return {};
  },
});
requests(Cluster.method.memberList, { 'all members': () => ({}) });
requests(Cluster.method.memberAdd, {
  'the URL of a member': async ({ root }) => {
    const { members } = await root.cluster.memberList({});
    return { peerURLs: members.flatMap((member) => member.peerURLs) };
  },
  'no URL': () => ({}),
});
requests(Cluster.method.memberRemove, { 'an unknown member': () => ({ ID: unknownMember }) });
requests(Cluster.method.memberUpdate, {
  'an unknown member': () => ({ ID: unknownMember, peerURLs: ['http://127.0.0.1:1'] }),
});
requests(Cluster.method.memberPromote, { 'an unknown member': () => ({ ID: unknownMember }) });
requests(Maintenance.method.alarm, {
  get: () => ({}),
  deactivate: () => ({ action: Action.DEACTIVATE, memberID: unknownMember, alarm: AlarmType.NOSPACE }),
});
requests(Maintenance.method.status, { 'this member': () => ({}) });
requests(Maintenance.method.defragment, { 'this member': () => ({}) });
requests(Maintenance.method.hash, { 'this member': () => ({}) });
requests(Maintenance.method.hashKV, { now: () => ({}) });
requests(Maintenance.method.snapshot, { now: () => ({}) });
requests(Maintenance.method.moveLeader, { 'an unknown member': () => ({ targetID: unknownMember }) });
requests(Maintenance.method.downgrade, {
  'not a version': () => ({ action: Downgrade.VALIDATE, version: 'nonsense' }),
});

requests(Auth.method.authEnable, { again: () => ({}) });
requests(Auth.method.authDisable, {
  auth: ({ root }) => {
    root.cleanUp(() => root.auth.authEnable({}));
    return {};
  },
});
requests(Auth.method.authStatus, { auth: () => ({}) });
requests(Auth.method.authenticate, {
  root: () => ({ name: 'root', password: rootPassword }),
  'a wrong password': () => ({ name: 'root', password: 'wrong' }),
});
requests(Auth.method.userAdd, {
  'a new user': ({ root, name }) => {
    root.cleanUp(() => root.auth.userDelete({ name }).catch(() => undefined));
    return { name, password: 'x' };
  },
  'no name': () => ({}),
  root: () => ({ name: 'root', password: 'x' }),
});
requests(Auth.method.userGet, {
  another: async (s) => ({ name: await s.account() }),
  'an unknown user': () => ({ name: 'unknown' }),
});
requests(Auth.method.userList, { all: () => ({}) });
requests(Auth.method.userDelete, {
  another: async (s) => ({ name: await s.account() }),
  root: () => ({ name: 'root' }),
  'an unknown user': () => ({ name: 'unknown' }),
});
requests(Auth.method.userChangePassword, {
  another: async (s) => ({ name: await s.account(), password: 'x' }),
  'an unknown user': () => ({ name: 'unknown', password: 'x' }),
});
requests(Auth.method.userGrantRole, {
  another: async (s) => {
    const name = await s.account();
    return { user: name, role: name };
  },
  'an unknown user': () => ({ user: 'unknown', role: 'root' }),
});
requests(Auth.method.userRevokeRole, {
  'root from root': () => ({ name: 'root', role: 'root' }),
  'an unknown user': () => ({ name: 'unknown', role: 'root' }),
});
requests(Auth.method.roleAdd, {
  'a role that is there': async (s) => ({ name: await s.account() }),
  'no name': () => ({}),
});
requests(Auth.method.roleGet, {
  another: async (s) => ({ role: await s.account() }),
  root: () => ({ role: 'root' }),
});
requests(Auth.method.roleList, { all: () => ({}) });
requests(Auth.method.roleDelete, {
  another: async (s) => ({ role: await s.account() }),
  root: () => ({ role: 'root' }),
});
requests(Auth.method.roleGrantPermission, {
  another: async (s) => ({ name: await s.account(), perm: { key: bytes('a') } }),
  'no permission': async (s) => ({ name: await s.account() }),
});
requests(Auth.method.roleRevokePermission, {
  'a permission that it has not': async (s) => ({ role: await s.account(), key: bytes('a') }),
});

requests(Lock.method.lock, {
  'a key': async (s) => ({ name: s.key, lease: await s.leaseWith() }),
  'a foreign key': async (s) => ({ name: s.foreignKey, lease: await s.leaseWith() }),
});
requests(Lock.method.unlock, oneKey);
const election = {
  'a key': ({ key }: Subject) => ({ name: key }),
  'a foreign key': (s: Subject) => ({ name: s.foreignKey }),
};
const leaderKey = (name: Uint8Array<ArrayBuffer>): MessageInitShape<typeof v3electionpb.LeaderKeySchema> => ({
  name,
  key: Buffer.concat([name, bytes('/1')]),
  rev: 1n,
  lease: 1n,
});
const leader = {
  'a key': ({ key }: Subject) => ({ leader: leaderKey(key) }),
  'a foreign key': (s: Subject) => ({ leader: leaderKey(s.foreignKey) }),
  'no leader': () => ({}),
};
requests(Election.method.campaign, {
  'a key': async (s) => ({ name: s.key, lease: await s.leaseWith() }),
  'a foreign key': async (s) => ({ name: s.foreignKey, lease: await s.leaseWith() }),
});
requests(Election.method.leader, election);
requests(Election.method.proclaim, leader);
requests(Election.method.resign, leader);
requests(Election.method.observe, {
  // With a leader, so that the stream of a caller who may read it has a message.
  'a key': async (s) => {
    await s.root.kv.put({ key: Buffer.concat([s.key, bytes('/1')]), lease: await s.leaseWith() });
    return { name: s.key };
  },
  'a foreign key': async (s) => {
    await s.root.kv.put({ key: Buffer.concat([s.foreignKey, bytes('/1')]), lease: await s.leaseWith() });
    return { name: s.foreignKey };
  },
});
requests(Health.method.check, { 'the server': () => ({}), 'an unknown service': () => ({ service: 'unknown' }) });
requests(Health.method.watch, { 'the server': () => ({}) });

/** By the path of the method. */
export const requestsByMethod: ReadonlyMap<string, Requests> = table;
