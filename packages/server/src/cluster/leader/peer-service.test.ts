import { once } from 'node:events';
import { connect } from 'node:net';
import { defaultTxnLimits, type Command } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { encodeCommand } from '../../replica/command-codec.ts';
import { LeaderConnection, type LeaderConnectionOptions } from '../follower/leader-connection.ts';
import type { LeaderView } from '../link/leader-view.ts';
import { newNonce, noNonce, proofOf, proves } from '../link/link-proof.ts';
import { followerOptions } from '../testing/follower-options.ts';
import { LeadingServer } from '../testing/leading-server.ts';
import { clientOf, patience, Stranger } from '../testing/stranger.ts';
import { systemRandom } from '../../random/system-random.ts';
import { GrpcCode } from '@tenure/grpc-server';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  Stranger.cancelAll();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(members: readonly bigint[] = [2n, 3n]): Promise<LeadingServer> {
  const server = await LeadingServer.start(members);
  cleanups.push(() => server.close());
  return server;
}

const wrongSecret = { code: 7, details: 'the secret of this cluster is another' };

describe('a stream between servers', () => {
  test('begins with proofs of both sides that they know the secret', async () => {
    const server = await start();
    const { secret } = server.replica.state;
    const follower = new Stranger(server);
    const { transcript, mac } = await follower.hello(server);
    expect(proves(mac, 'leader', secret, transcript)).toBe(true);
    expect(proves(mac, 'follower', secret, transcript)).toBe(false);
    follower.say({ proof: { mac: proofOf('follower', secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
    expect(server.peers.peers.map(({ memberId }) => memberId)).toEqual([2n]);
  });

  test('ends at an address for clients once servers have one of their own, and there alone', async () => {
    const server = await start();
    const atServers = new Stranger(server);
    await atServers.join(server, { memberId: 3n });
    server.arriveAt = 'clients';
    const atClients = new Stranger(server);
    await atClients.join(server);
    server.peers.endAtClients();
    expect(await atClients.ended()).toEqual({ code: 14, details: 'servers have an address of their own' });
    expect(atServers.status).toBeUndefined();
    expect(server.peers.peers.map(({ memberId }) => memberId)).toEqual([3n]);
  });

  test('is refused with another secret, with the leader’s own proof, and with none', async () => {
    const server = await start();
    const stranger = new Stranger(server);
    const { transcript } = await stranger.hello(server);
    stranger.say({ proof: { mac: proofOf('follower', 'guessed', transcript) } });
    expect(await stranger.ended()).toEqual(wrongSecret);

    const mirror = new Stranger(server);
    const { mac } = await mirror.hello(server);
    mirror.say({ proof: { mac } });
    expect(await mirror.ended()).toEqual(wrongSecret);

    const hasty = new Stranger(server);
    await hasty.hello(server);
    hasty.say({ renewals: [{ ids: [1n] }] });
    expect(await hasty.ended()).toEqual(wrongSecret);
    expect(server.peers.peers).toEqual([]);
  });

  test('is refused with a replayed proof, though the rest of the messages is the same', async () => {
    const server = await start();
    const { secret } = server.replica.state;
    const nonce = newNonce(systemRandom);
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server, { nonce });
    const overheard = proofOf('follower', secret, transcript);
    follower.say({ proof: { mac: overheard } });
    await follower.welcomed();

    const replayer = new Stranger(server);
    await replayer.hello(server, { nonce, isGreeting: false });
    replayer.say({ proof: { mac: overheard } });
    expect(await replayer.ended()).toEqual(wrongSecret);
  });

  test('is refused without a greeting, with a short nonce, and for another epoch', async () => {
    const server = await start();
    const mute = new Stranger(server);
    mute.say({ renewals: [{ ids: [1n] }] });
    expect((await mute.ended()).code).toBe(3);
    const weak = new Stranger(server);
    weak.say({ hello: { memberId: 2n, run: '5', epoch: 1n, nonce: new Uint8Array(8) } });
    expect((await weak.ended()).code).toBe(3);
    for (const epoch of [0n, 9n]) {
      const late = new Stranger(server);
      late.say({ hello: { memberId: 2n, run: '5', epoch, nonce: newNonce(systemRandom) } });
      expect(await late.ended()).toEqual({ code: 14, details: 'etcdserver: not leader' });
    }
  });

  test('is refused for an invalid message, before and after the proof, without a line in the log', async () => {
    const server = await start();
    const nonsense = Buffer.from([0x0a, 0xff]);
    const mute = new Stranger(server);
    mute.sayBytes(nonsense);
    const refused = await mute.ended();
    expect(refused.code).toBe(13);
    expect(refused.details).toContain('grpc: failed to unmarshal the received message');
    const greeted = new Stranger(server);
    await greeted.hello(server);
    greeted.sayBytes(nonsense);
    expect(await greeted.ended()).toEqual(refused);
    expect(server.logged).toEqual([]);
  });

  test('is not taken from a server by any number of clients without the secret', async () => {
    const server = await start();
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server);
    const client = clientOf(server.address);
    const crowd = Array.from({ length: 1_100 }, () => new Stranger(server, client));
    for (const stranger of crowd.slice(0, 100))
      void stranger.hello(server, { isGreeting: false }).catch(() => undefined);
    expect(await Promise.race(crowd.map((stranger) => stranger.ended()))).toMatchObject({ code: 8 });
    follower.say({ proof: { mac: proofOf('follower', server.replica.state.secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
  });

  test('is not taken by clients that replay the greeting of a server, or make one without the secret', async () => {
    const server = await start();
    const nonce = newNonce(systemRandom);
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server, { nonce });
    const { memberId, run, epoch } = transcript;
    const mac = proofOf('greeting', server.replica.state.secret, { ...transcript, leaderNonce: noNonce });
    const client = clientOf(server.address);
    for (const [said, details] of [
      [mac, 'the greeting was made for another stream'],
      [Buffer.alloc(32, 7), wrongSecret.details],
    ] as const) {
      const crowd = Array.from({ length: 100 }, () => new Stranger(server, client));
      for (const stranger of crowd) stranger.say({ hello: { memberId, run, epoch, nonce, mac: said } });
      for (const stranger of crowd) expect(await stranger.ended()).toEqual({ code: 7, details });
    }
    follower.say({ proof: { mac: proofOf('follower', server.replica.state.secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
  });

  test('is accepted and kept while clients hold all sockets and strangers keep connecting', async () => {
    const server = await LeadingServer.start([2n], { limits: { maxConnections: 4, maxReservedConnections: 4 } });
    cleanups.push(() => server.close());
    const port = Number(server.address.split(':')[1]);
    const closed: number[] = [];
    const knock = (count: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: count }, (_, at) => {
          const socket = connect(port, '127.0.0.1').on('error', () => undefined);
          cleanups.push(() => void socket.destroy());
          socket.once('close', () => closed.push(at));
          return once(socket, 'connect');
        }),
      );
    await knock(24);
    await vi.waitFor(() => expect(closed).toHaveLength(16), patience);
    const follower = new Stranger(server);
    await follower.join(server);
    await knock(40);
    await vi.waitFor(() => expect(closed).toHaveLength(16 + 1 + 40), patience);
    follower.say({ appliedIndex: 1n });
    await vi.waitFor(() => expect(server.peers.peers).toMatchObject([{ memberId: 2n, appliedIndex: 1 }]), patience);
    expect(follower.status).toBeUndefined();
    // The connections reserved for servers serve no client.
    expect(await fetch(`http://${server.address}/metrics`).then(String, () => 'closed')).toBe('closed');
  });

  test('of a server of an older version, which sends no proof with its greeting, is accepted', async () => {
    const server = await start();
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server, { isGreeting: false });
    follower.say({ proof: { mac: proofOf('follower', server.replica.state.secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
  });

  test('is refused for a run beyond the numbers of the log', async () => {
    const server = await start();
    for (const run of ['', '-1', 'NaN', '1e3', '4294967296', '9'.repeat(400)]) {
      const stranger = new Stranger(server);
      stranger.say({ hello: { memberId: 2n, run, epoch: 1n, nonce: newNonce(systemRandom) } });
      expect((await stranger.ended()).code).toBe(3);
    }
  });

  test('is ended by the follower when the leader does not know the secret', async () => {
    const server = await start();
    const { clusterId } = server.replica.state;
    const link = (options: Partial<LeaderConnectionOptions>): Promise<string> =>
      new Promise((resolve) => {
        const heard = {
          onWelcome: () => resolve('welcome'),
          onClosed: (_: unknown, { details }: { details: string }) => resolve(details),
        };
        const connection = new LeaderConnection(followerOptions({ ...server.known, ...heard, ...options }));
        cleanups.push(() => connection.close());
      });
    expect(await link({})).toBe('welcome');
    const impostor = `the server at http://${server.address} does not know the secret of this cluster`;
    expect(await link({ secret: 'another' })).toBe(impostor);
    expect(await link({ clusterId: clusterId + 1n })).toBe(impostor);
    // Another run of the leader's process than the one that made the claim.
    expect(await link({ leader: '1/ffff' })).toBe(impostor);
  });
});

describe('the leader', () => {
  const look = (server: LeadingServer, times: number): void => {
    for (let looked = 0; looked < times; looked += 1) server.peers.look();
  };

  /** Waits until the leader has received the follower's report of its applied index. */
  const heard = (server: LeadingServer, appliedIndex: number): Promise<void> =>
    vi.waitFor(() => expect(server.peers.peers).toMatchObject([{ memberId: 2n, appliedIndex }]), patience);

  test('appends no command of a follower that only a leader may propose', async () => {
    const server = await start([2n]);
    const { secret } = server.replica.state;
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server);
    follower.say({ proof: { mac: proofOf('follower', secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
    const { index } = server.replica.position;
    const commands: Command[] = [
      { kind: 'claim', epoch: 2, leader: 'me', leaderLeaseMs: 800 },
      { kind: 'resign', target: 2n },
      { kind: 'createCluster', clusterId: 1n, secret: 'mine' },
      { kind: 'heartbeat' },
      { kind: 'expireLeases', leases: [{ id: 1n, renewIndex: 1 }] },
      { kind: 'checkpointLeases', leases: [] },
      { kind: 'renewLeases', ids: [1n] },
      { kind: 'setTxnLimits', limits: defaultTxnLimits },
    ];
    follower.say({ proposals: commands.map((command, at) => ({ sequence: BigInt(at), ...encodeCommand(command) })) });
    await vi.waitFor(() => expect(follower.refusals).toHaveLength(commands.length), patience);
    for (const { reason } of follower.refusals) expect(reason).toBe(peerpb.Refusal_Reason.NOT_ALLOWED);
    expect(server.replica.position.index).toBe(index);
  });

  test('ends the stream of a follower that sends nothing any more, and marks it silent', async () => {
    const server = await start([2n]);
    const { secret } = server.replica.state;
    const follower = new Stranger(server);
    const { transcript } = await follower.hello(server);
    follower.say({ proof: { mac: proofOf('follower', secret, transcript) } });
    await expect(follower.welcomed()).resolves.not.toThrow();
    for (let entries = 0; entries < 10; entries += 1) await server.replica.barrier();
    for (let said = 1; said <= 10; said += 1) {
      look(server, 3);
      follower.say({ appliedIndex: BigInt(said) });
      await heard(server, said);
    }
    expect(follower.status).toBeUndefined();
    expect(server.peers.view.silent).toEqual([]);
    look(server, 3);
    expect(server.peers.peers).toHaveLength(1);
    look(server, 1);
    expect((await follower.ended()).details).toBe('nothing was heard of this server for too long');
    expect(server.peers.view.silent).toEqual([2n]);
    expect(server.peers.peers).toEqual([]);
  });

  test('sets limits of transactions once every member has reported support for them, not before', async () => {
    const server = await LeadingServer.start([2n, 3n], { hasOldLog: true });
    cleanups.push(() => server.close());
    const { state } = server.replica;
    const lookAndSettle = async (): Promise<boolean> => {
      look(server, 1);
      await server.replica.barrier();
      return state.hasTxnLimits;
    };
    const old = new Stranger(server);
    await old.join(server, { memberId: 2n });
    await new Stranger(server).join(server, { memberId: 3n, newestCommand: 17 });
    expect(await lookAndSettle()).toBe(false);
    look(server, 3);
    await old.ended();
    expect(await lookAndSettle()).toBe(false);
    // The same server with the newer version.
    await new Stranger(server).join(server, { memberId: 2n, run: '6', newestCommand: 17 });
    await new Stranger(server).join(server, { memberId: 3n, newestCommand: 17 });
    expect(await lookAndSettle()).toBe(true);
    expect(state.txnLimits).toEqual(defaultTxnLimits);
  });

  test('checks its links by itself', async () => {
    const server = await LeadingServer.start([2n], { lookIntervalMs: 5 });
    cleanups.push(() => server.close());
    await vi.waitFor(() => expect(server.peers.view.silent).toEqual([2n]), patience);
  });

  test('marks members silent that never connected, and keeps telling the linked followers', async () => {
    const server = await start([2n, 3n]);
    const told: (readonly bigint[])[] = [];
    const onView = ({ index, silent }: LeaderView): void => {
      expect(index).toBe(server.replica.position.index);
      told.push(silent);
    };
    let said = 0;
    const appliedIndex = (): number => said;
    const connection = new LeaderConnection(followerOptions({ ...server.known, appliedIndex, onView }));
    cleanups.push(() => connection.close());
    const toldAfterLook = async (): Promise<readonly bigint[] | undefined> => {
      said += 1;
      connection.report();
      await heard(server, said);
      const before = told.length;
      look(server, 1);
      await vi.waitFor(() => expect(told.length).toBeGreaterThan(before), patience);
      return told.at(-1);
    };
    await vi.waitFor(() => expect(told).toEqual([[]]), patience);
    for (let looks = 0; looks < 2; looks += 1) expect(await toldAfterLook()).toEqual([]);
    expect(await toldAfterLook()).toEqual([3n]);
    await server.replica.propose({ kind: 'removeMember', id: 3n });
    expect(await toldAfterLook()).toEqual([]);
  });

  test('refuses a name in use, and accepts one whose earlier run has vanished', async () => {
    const server = await start([2n]);
    const { secret } = server.replica.state;
    const join = async (run: string, memberId = 2n): Promise<Stranger> => {
      const joining = new Stranger(server);
      const { transcript } = await joining.hello(server, { run, memberId });
      joining.say({ proof: { mac: proofOf('follower', secret, transcript) } });
      return joining;
    };
    const taken = { code: 6, details: expect.stringContaining('a server of the same name is running') };
    const doubted = { code: 14, details: 'a server of the same name was there a moment ago' };
    const first = await join('5');
    await first.welcomed();
    // The first run may have ended without a word, until it is heard again after the second one came.
    expect(await (await join('6')).ended()).toEqual(doubted);
    expect(await (await join('6')).ended()).toEqual(doubted);
    first.say({ appliedIndex: 1n });
    await heard(server, 1);
    expect(await (await join('6')).ended()).toEqual(taken);
    expect(await (await join('7', 1n)).ended()).toEqual(taken);
    // From now on the first run sends nothing, and after a while it counts as gone.
    expect(await (await join('8')).ended()).toEqual(doubted);
    look(server, 3);
    expect(await (await join('8')).ended()).toEqual(doubted);
    look(server, 1);
    const last = await join('8');
    await last.welcomed();
    expect(last.status).toBeUndefined();
    expect((await first.ended()).code).toBe(14);
  });
});

test('a greeting that was made for a TLS connection is not accepted on a connection without TLS', async () => {
  const server = await LeadingServer.start([2n]);
  try {
    const { clusterId, epoch, secret } = server.replica.state;
    const said = { clusterId, epoch: BigInt(epoch), leader: server.leader, memberId: 2n, run: '5' };
    const nonces = { followerNonce: newNonce(systemRandom), leaderNonce: noNonce };
    const channel = Buffer.alloc(32, 7);
    const mac = proofOf('greeting', secret, { ...said, ...nonces, channel });
    const stranger = new Stranger(server);
    stranger.say({ hello: { memberId: 2n, run: '5', epoch: said.epoch, nonce: nonces.followerNonce, mac, channel } });
    expect(await stranger.ended()).toMatchObject({ code: GrpcCode.failedPrecondition });
    // Without its channel, the proof does not fit.
    const other = new Stranger(server);
    other.say({ hello: { memberId: 2n, run: '5', epoch: said.epoch, nonce: nonces.followerNonce, mac } });
    expect(await other.ended()).toMatchObject({ code: GrpcCode.permissionDenied });
  } finally {
    Stranger.cancelAll();
    await server.close();
  }
});
