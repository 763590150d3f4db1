import { type AuthChange, type Command, defaultTxnLimits, invalidToken, rootName } from '@tenure/core';
import * as grpc from '@grpc/grpc-js';
import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes } from '@tenure/codec';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PasswordHasher } from './auth/password-hasher.ts';
import { parseServerConfig } from './config/parse-server-config.ts';
import { EngineHealth } from './engines/engine-health.ts';
import { memoryEngine } from './engines/memory/memory-engine.ts';
import { systemRandom } from './random/system-random.ts';
import { LeaderConnection, type LeaderConnectionOptions } from './cluster/follower/leader-connection.ts';
import { followerOptions } from './cluster/testing/follower-options.ts';
import { logStart } from './engines/chain-hash.ts';
import { encodeCommand } from './replica/command-codec.ts';
import { encodeEntry } from './replica/entry-codec.ts';
import { WiredEngine } from './replica/testing/wired-engine.ts';
import { Server } from './server.ts';
import { systemClock } from './time/system-clock.ts';

const patience = { timeout: 20_000, interval: 20 };
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, isLevelEnabled: () => false };
const log = memoryEngine({ isShared: true });
const servers: Server[] = [];
const clients: grpc.Client[] = [];

/** Passwords are their own hashes: to log in is not what is tested here. */
const passwords: PasswordHasher = {
  hash: async (password) => password,
  check: async ({ password, hash }) => password === hash,
  stop: () => {},
};

async function startServer(name: string): Promise<Server> {
  const argv = ['--name', name, '--engine', 'memory', '--listen-client-urls', 'http://127.0.0.1:0'];
  const outcome = parseServerConfig({ argv, env: {} });
  if (outcome.kind !== 'config') throw new Error(JSON.stringify(outcome));
  const server: Server = await Server.open({
    config: outcome.config,
    engine: new WiredEngine(log),
    engineHealth: new EngineHealth({ onChange: () => {}, onAppendTrouble: () => {} }),
    log: quiet,
    clock: systemClock,
    random: systemRandom,
    passwords,
  });
  servers.push(server);
  await server.start();
  return server;
}

function clientOf(server: Server): grpc.Client {
  const address = server.urls[0]?.replace('http://', '') ?? '';
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  clients.push(client);
  return client;
}

interface Answer {
  readonly code: number;
  readonly details: string;
  readonly messages: Buffer[];
}

/** Sends the messages on one stream, and resolves with its status and all replies. */
function ask(client: grpc.Client, method: string, token: string | undefined, messages: Buffer[]): Promise<Answer> {
  const metadata = new grpc.Metadata();
  if (token !== undefined) metadata.set('token', token);
  const pass = (bytes: Buffer): Buffer => bytes;
  const call = client.makeBidiStreamRequest(`/etcdserverpb.Lease/${method}`, pass, pass, metadata);
  const heard: Buffer[] = [];
  for (const message of messages) call.write(message);
  call.end();
  return new Promise((resolve) => {
    call.on('data', (bytes: Buffer) => heard.push(bytes));
    call.on('error', () => {});
    call.on('status', ({ code, details }: grpc.StatusObject) => resolve({ code, details, messages: heard }));
  });
}

function logIn(client: grpc.Client, name: string): Promise<string> {
  const pass = (bytes: Buffer): Buffer => bytes;
  const framed = encodeFramed(etcdserverpb.AuthenticateRequestSchema, { name, password: 'x' });
  const request = framed.subarray(frameHeadroomBytes);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest('/etcdserverpb.Auth/Authenticate', pass, pass, request, (error, reply) => {
      if (error !== null || reply === undefined) reject(error ?? new Error('no reply'));
      else resolve(decodeMessage(etcdserverpb.AuthenticateResponseSchema, reply).token);
    });
  });
}

const keepAlive = (id: bigint): Buffer =>
  encodeFramed(etcdserverpb.LeaseKeepAliveRequestSchema, { ID: id }).subarray(frameHeadroomBytes);
const timeToLive = (id: bigint, keys: boolean): Buffer =>
  encodeFramed(etcdserverpb.LeaseTimeToLiveRequestSchema, { ID: id, keys }).subarray(frameHeadroomBytes);
const grant = (id: bigint, seconds = 600n): Buffer =>
  encodeFramed(etcdserverpb.LeaseGrantRequestSchema, { ID: id, TTL: seconds }).subarray(frameHeadroomBytes);
const revoke = (id: bigint): Buffer =>
  encodeFramed(etcdserverpb.LeaseRevokeRequestSchema, { ID: id }).subarray(frameHeadroomBytes);

const ok = { code: 0, details: '' };
const empty = { code: 3, details: 'etcdserver: user name is empty' };
const invalid = { code: 16, details: 'etcdserver: invalid auth token' };
const denied = { code: 7, details: 'etcdserver: permission denied' };
const notFound = { code: 5, details: 'etcdserver: requested lease not found' };

/** The lease 1 has the key k/1, the lease 2 has none, and there is no lease 99. */
type UserName = 'none' | 'stranger' | 'bob' | 'reader' | 'writer' | 'root';
const tokens: Partial<Record<UserName, string>> = { stranger: 'no token' };

const grantPermission = (role: string, type: 'read' | 'readWrite'): AuthChange => {
  return { kind: 'grantPermission', role, permission: { type, key: 'k/', rangeEnd: 'k0' } };
};
const begin: readonly AuthChange[] = [
  ...[rootName, 'bob', 'reader', 'writer'].map((user): AuthChange => ({
    kind: 'addUser',
    user,
    passwordHash: 'x',
    noPassword: false,
  })),
  { kind: 'addRole', role: 'reads' },
  { kind: 'addRole', role: 'writes' },
  grantPermission('reads', 'read'),
  grantPermission('writes', 'readWrite'),
  { kind: 'grantRole', user: 'reader', role: 'reads' },
  { kind: 'grantRole', user: 'writer', role: 'writes' },
  { kind: 'grantRole', user: rootName, role: rootName },
  { kind: 'enable' },
];

/** What the log holds before the servers start. */
const past: readonly Command[] = [
  { kind: 'createCluster', clusterId: 7n, secret: 'known to the servers' },
  { kind: 'setTxnLimits', limits: defaultTxnLimits },
  { kind: 'leaseGrant', id: 1n, ttlMs: 600_000, label: '' },
  { kind: 'leaseGrant', id: 2n, ttlMs: 600_000, label: '' },
  {
    kind: 'put',
    put: { key: 'k/1', value: '', lease: 1n, prevKv: false, ignoreValue: false, ignoreLease: false },
  },
  ...begin.map((change): Command => ({ kind: 'auth', change })),
];

const leaderNow = (): Server | undefined => servers.find(({ leads }) => leads);

/** A stream to the leader as another server would have one. */
function link(heard: Partial<LeaderConnectionOptions> = {}): Promise<LeaderConnection> {
  const server = leaderNow();
  if (server === undefined) throw new Error('no server leads');
  const { clusterId, epoch, secret, leader } = server.state;
  const [url = ''] = server.urls;
  return new Promise((resolve, reject) => {
    void new LeaderConnection(
      followerOptions({
        ...{ url, clusterId, epoch, secret, leader, memberId: 77n },
        onClosed: (_, { details }) => reject(new Error(details)),
        ...heard,
        onWelcome: resolve,
      }),
    );
  });
}

/** Applies a change of root through another server, and resolves when every server has applied it. */
async function change(next: AuthChange): Promise<void> {
  const connection = await link();
  const authRevision = leaderNow()?.state.auth.revision ?? 0;
  const command: Command = { kind: 'auth', change: next, by: { user: rootName, authRevision } };
  const encoded = { ...encodeCommand(command), origin: { run: 5, sequence: authRevision } };
  connection.propose({ command, encoded, expiresMs: 0, epoch: 1, resolve: () => {}, reject: () => {} });
  await vi.waitFor(() => {
    for (const { state } of servers) expect(state.auth.revision).toBe(authRevision + 1);
  }, patience);
  connection.close();
}

const through: Partial<Record<'leader' | 'follower', grpc.Client>> = {};

beforeAll(async () => {
  const encoded = past.map((command) => encodeCommand(command));
  await log.append([encodeEntry({ epoch: 0, timeMs: 0 }, encoded)], logStart);
  await startServer('a');
  await Promise.all([startServer('b'), startServer('c')]);
  const leader = await vi.waitFor(() => {
    const found = leaderNow();
    if (found === undefined) throw new Error('no server leads');
    return found;
  }, patience);
  expect(leader.state.auth.enabled && leader.state.keyCountOfLease(1n)).toBe(1);
  through.leader = clientOf(leader);
  const [follower] = servers.filter((server) => server !== leader);
  if (follower !== undefined) through.follower = clientOf(follower);
  for (const user of ['bob', 'reader', 'writer', 'root'] as const) tokens[user] = await logIn(through.leader, user);
}, 60_000);

afterAll(async () => {
  for (const client of clients) client.close();
  await Promise.all(servers.map((server) => server.close()));
  await log.close();
});

describe.each(['leader', 'follower'] as const)('while authentication is enabled, through the %s', (server) => {
  const asked = async (method: string, user: UserName, ...messages: Buffer[]): Promise<Answer> => {
    const client = through[server];
    if (client === undefined) throw new Error('the servers have not started');
    return await ask(client, method, tokens[user], messages);
  };
  const statusOf = async (method: string, user: UserName, ...messages: Buffer[]): Promise<object> => {
    const { code, details } = await asked(method, user, ...messages);
    return { code, details };
  };
  /** The TTL in seconds of each reply, after which the stream ended with the status. */
  const renewed = async (user: UserName, ...ids: bigint[]): Promise<object> => {
    const { code, details, messages } = await asked('LeaseKeepAlive', user, ...ids.map(keepAlive));
    const ttls = messages.map((bytes) => decodeMessage(etcdserverpb.LeaseKeepAliveResponseSchema, bytes).TTL);
    return { code, details, ttls };
  };

  test('a renewal needs the right to write every key of the lease', async () => {
    for (const [user, status] of [
      ['none', empty],
      ['stranger', invalid],
      ['bob', denied],
      ['reader', denied],
    ] as const) {
      expect([user, await renewed(user, 1n)]).toEqual([user, { ...status, ttls: [] }]);
    }
    expect(await renewed('none', 99n)).toEqual({ ...empty, ttls: [] });
    expect(await renewed('stranger', 2n)).toEqual({ ...invalid, ttls: [] });
    for (const user of ['writer', 'root'] as const) {
      expect([user, await renewed(user, 1n)]).toEqual([user, { ...ok, ttls: [600n] }]);
    }
    for (const user of ['bob', 'reader', 'writer', 'root'] as const) {
      expect([user, await renewed(user, 2n)]).toEqual([user, { ...ok, ttls: [600n] }]);
      expect([user, await renewed(user, 99n)]).toEqual([user, { ...ok, ttls: [0n] }]);
    }
  });

  test('two users who renew one lease at the same time get their own answers', async () => {
    const all = ['writer', 'bob', 'root', 'reader', 'none', 'writer'] as const;
    const statuses = [ok, denied, ok, denied, empty, ok];
    const answers = await Promise.all(all.map((user) => renewed(user, 1n)));
    expect(answers).toEqual(statuses.map((status) => ({ ...status, ttls: status === ok ? [600n] : [] })));
  });

  test('a TTL is told to every user, and with its keys to those who may read all of them', async () => {
    for (const [user, status] of [
      ['none', empty],
      ['stranger', invalid],
    ] as const) {
      for (const id of [1n, 2n, 99n]) {
        for (const keys of [false, true]) {
          expect(await statusOf('LeaseTimeToLive', user, timeToLive(id, keys))).toEqual(status);
        }
      }
    }
    const told = async (user: UserName, id: bigint, keys: boolean): Promise<object> => {
      const { code, details, messages } = await asked('LeaseTimeToLive', user, timeToLive(id, keys));
      if (code !== 0) return { code, details };
      const reply = decodeMessage(etcdserverpb.LeaseTimeToLiveResponseSchema, messages[0] ?? Buffer.alloc(0));
      return { granted: reply.grantedTTL, keys: reply.keys.map((key) => Buffer.from(key).toString()) };
    };
    for (const user of ['bob', 'reader', 'writer', 'root'] as const) {
      const mayRead = user !== 'bob';
      expect(await told(user, 1n, false)).toEqual({ granted: 600n, keys: [] });
      expect([user, await told(user, 1n, true)]).toEqual([user, mayRead ? { granted: 600n, keys: ['k/1'] } : denied]);
      expect(await told(user, 2n, true)).toEqual({ granted: 600n, keys: [] });
      expect(await told(user, 99n, true)).toEqual({ granted: 0n, keys: [] });
    }
  });

  test('the list of leases is told to those who may read every key of every lease', async () => {
    for (const [user, status] of [
      ['none', empty],
      ['stranger', invalid],
      ['bob', denied],
    ] as const) {
      expect([user, await statusOf('LeaseLeases', user, Buffer.alloc(0))]).toEqual([user, status]);
    }
    for (const user of ['reader', 'writer', 'root'] as const) {
      const { code, messages } = await asked('LeaseLeases', user, Buffer.alloc(0));
      const { leases } = decodeMessage(etcdserverpb.LeaseLeasesResponseSchema, messages[0] ?? Buffer.alloc(0));
      expect({ user, code, ids: new Set(leases.map(({ ID }) => ID)) }).toEqual({
        user,
        code: 0,
        ids: new Set([1n, 2n]),
      });
    }
  });

  test('a grant needs a user, and a revocation the right to write every key of the lease', async () => {
    const id = server === 'leader' ? 10n : 11n;
    const tooLong = { code: 11, details: 'etcdserver: too large lease TTL' };
    for (const [user, status] of [
      ['none', empty],
      ['stranger', invalid],
    ] as const) {
      expect(await statusOf('LeaseGrant', user, grant(id))).toEqual(status);
      expect(await statusOf('LeaseGrant', user, grant(1n))).toEqual(status);
      expect(await statusOf('LeaseGrant', user, grant(id, 9_000_000_001n))).toEqual(status);
      for (const each of [1n, 2n, 99n]) expect(await statusOf('LeaseRevoke', user, revoke(each))).toEqual(status);
    }
    for (const user of ['bob', 'reader'] as const) {
      expect(await statusOf('LeaseGrant', user, grant(id))).toEqual(ok);
      expect(await statusOf('LeaseGrant', user, grant(id, 9_000_000_001n))).toEqual(tooLong);
      expect(await statusOf('LeaseRevoke', user, revoke(1n))).toEqual(denied);
      expect(await statusOf('LeaseRevoke', user, revoke(id))).toEqual(ok);
      expect(await statusOf('LeaseRevoke', user, revoke(id))).toEqual(notFound);
    }
    expect(leaderNow()?.state.keyCountOfLease(1n)).toBe(1);
  });

  test('the messages of an open stream are refused from the moment at which a permission is taken', async () => {
    const metadata = new grpc.Metadata();
    metadata.set('token', tokens.writer ?? '');
    const pass = (bytes: Buffer): Buffer => bytes;
    const call = through[server]!.makeBidiStreamRequest('/etcdserverpb.Lease/LeaseKeepAlive', pass, pass, metadata);
    const ended = new Promise<object>((resolve) => {
      call.on('error', () => {});
      call.on('status', ({ code, details }: grpc.StatusObject) => resolve({ code, details }));
    });
    let replies = 0;
    call.on('data', () => (replies += 1));
    call.write(keepAlive(1n));
    await vi.waitFor(() => expect(replies).toBe(1), patience);
    await change({ kind: 'revokeRole', user: 'writer', role: 'writes' });
    call.write(keepAlive(1n));
    expect(await ended).toEqual(denied);
    expect(replies).toBe(1);
    await change({ kind: 'grantRole', user: 'writer', role: 'writes' });
    expect(await renewed('writer', 1n)).toEqual({ ...ok, ttls: [600n] });
  });
});

test('a follower renews only in the name of a user, which one of an older version does not send', async () => {
  const heard: unknown[] = [];
  const connection = await link({
    onRenewed: ({ id, by }, ttlMs) => heard.push([id, by?.user, ttlMs]),
    onRenewalRefused: ({ id, by }, { code, message }) => heard.push([id, by?.user, code, message]),
    onClosed: (_, { details }) => heard.push(details),
  });
  const authRevision = leaderNow()?.state.auth.revision ?? 0;
  const requesters = [undefined, invalidToken, { user: 'bob', authRevision }, { user: 'writer', authRevision }];
  for (const by of requesters) connection.renew({ id: 1n, by });
  await vi.waitFor(() => expect(heard).toHaveLength(requesters.length), patience);
  expect(new Set(heard)).toEqual(
    new Set([
      [1n, undefined, empty.code, empty.details],
      [1n, '', invalid.code, invalid.details],
      [1n, 'bob', denied.code, denied.details],
      [1n, 'writer', 600_000],
    ]),
  );
  // The stream is open, and a call without a requester is refused too.
  const path = '/etcdserverpb.Lease/LeaseLeases';
  await expect(connection.call(path, Buffer.alloc(0), undefined)).rejects.toMatchObject({ code: empty.code });
  await expect(connection.call(path, Buffer.alloc(0), requesters[2])).rejects.toMatchObject({ code: denied.code });
  expect((await connection.call(path, Buffer.alloc(0), requesters[3])).length).toBeGreaterThan(frameHeadroomBytes);
  const before = heard.length;
  connection.close();
  await vi.waitFor(() => expect(heard).toHaveLength(before + 1), patience);
});
