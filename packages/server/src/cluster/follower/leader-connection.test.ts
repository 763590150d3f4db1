import type { Command } from '@tenure/core';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { startTestServer } from '@tenure/test-support';
import type { MethodHandler } from '../../transport/transport.ts';
import { encodeCommand } from '../../replica/command-codec.ts';
import { ProposalError } from '../../replica/proposal-error.ts';
import { LeaderConnection } from './leader-connection.ts';
import { followerOptions } from '../testing/follower-options.ts';
import { LeadingServer, type LeadingServerOptions } from '../testing/leading-server.ts';

const patience = { timeout: 20_000, interval: 20 };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** The messages that a follower received from the leader. */
interface Told {
  readonly renewed: Set<bigint>;
  readonly renewalsRefused: bigint[];
  readonly refused: { sequence: number; code: string | number }[];
  ended: string | undefined;
}

/** A follower's stream to a leader, once the leader has accepted it. */
async function connect(server: LeadingServer): Promise<{ connection: LeaderConnection; told: Told }> {
  const told: Told = { renewed: new Set(), renewalsRefused: [], refused: [], ended: undefined };
  const connection = await new Promise<LeaderConnection>((resolve) => {
    const options = followerOptions({
      ...server.known,
      onWelcome: resolve,
      onRenewed: ({ id }) => told.renewed.add(id),
      onRenewalRefused: ({ id }) => told.renewalsRefused.push(id),
      onRefused: (sequence, { code }) => told.refused.push({ sequence, code }),
      onClosed: (_, { details }) => (told.ended = details),
    });
    const begun = new LeaderConnection(options);
    cleanups.push(() => begun.close());
  });
  return { connection, told };
}

function propose(connection: LeaderConnection, sequence: number, valueBytes: number): void {
  const value = 'x'.repeat(valueBytes);
  const put = { key: `key ${sequence}`, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  const command: Command = { kind: 'put', put };
  const encoded = { ...encodeCommand(command), origin: { run: 5, sequence } };
  connection.propose({ command, encoded, expiresMs: 0, epoch: 1, resolve: () => {}, reject: () => {} });
}

async function start(options: LeadingServerOptions = {}): Promise<LeadingServer> {
  const server = await LeadingServer.start([2n], options);
  cleanups.push(() => server.close());
  return server;
}

describe('the requests of a follower in one turn of the event loop', () => {
  test('are split into messages that the leader accepts', async () => {
    // The renewals alone, at ten bytes each, exceed one message, and the proposals are many times larger.
    const server = await start({ limits: { maxReceiveBytes: 600_000 } });
    const { connection, told } = await connect(server);
    for (let sequence = 1; sequence <= 60; sequence += 1) propose(connection, sequence, 100_000);
    const firstId = 2n ** 62n;
    const leases = { commit: 80_000n, ci: 300_000n, soak: 300_000n }[inject('effort')];
    for (let id = 0n; id < leases; id += 1n) connection.renew({ id: firstId + id, by: undefined });
    const done = { ended: undefined, keys: 60, renewed: Number(leases) };
    await vi.waitFor(() => {
      expect({ ended: told.ended, keys: server.replica.state.keyCount, renewed: told.renewed.size }).toEqual(done);
    }, patience);
  });
});

test('a server cannot claim that a name is taken before it has proved to be the leader', async () => {
  const taken = new GrpcStatus(GrpcCode.alreadyExists, 'a server of the same name is running');
  const link: MethodHandler = { kind: 'bidi', handle: (call) => call.end(taken) };
  const { transport, port } = await startTestServer({ '/tenure.peer.v1.Peer/Link': link });
  cleanups.push(() => transport.close({ graceMs: 200 }));
  const { code, details } = await new Promise<{ code: number; details: string }>((resolve) => {
    const url = `http://127.0.0.1:${port}`;
    const connection = new LeaderConnection(followerOptions({ url, onClosed: (_, status) => resolve(status) }));
    cleanups.push(() => connection.close());
  });
  expect(code).toBe(GrpcCode.unavailable);
  expect(details).toBe(taken.message);
});

describe('replies of the leader', () => {
  test('are split into messages that a follower accepts; too many are refused, and the stream stays open', async () => {
    const large = Buffer.alloc(8 * 1024 * 1024);
    const server = await start({ answer: () => large });
    const { connection, told } = await connect(server);
    const replies = await Promise.allSettled(
      Array.from({ length: 40 }, () => connection.call('/any', Buffer.alloc(1), undefined)),
    );
    const answered = replies.filter(({ status }) => status === 'fulfilled');
    const refused = replies.flatMap((reply) => (reply.status === 'rejected' ? [reply.reason as GrpcStatus] : []));
    expect(answered.length).toBeGreaterThanOrEqual(8);
    for (const { code } of refused) expect(code).toBe(GrpcCode.resourceExhausted);
    expect(told.ended).toBeUndefined();
    expect((await connection.call('/any', Buffer.alloc(1), undefined)).length).toBe(large.length);
  });
});

describe('a request that the leader refuses', () => {
  test('because its log is overloaded fails only the renewals, and the stream stays open', async () => {
    const overloaded = new ProposalError('overloaded', 'too many requests wait for the log');
    const renew = (id: bigint): number | Promise<number> => (id < 10n ? Promise.reject(overloaded) : 5_000);
    const { connection, told } = await connect(await start({ renew }));
    for (const id of [1n, 10n, 2n, 11n]) connection.renew({ id, by: undefined });
    await vi.waitFor(() => expect(told.renewalsRefused).toEqual([1n, 2n]), patience);
    await vi.waitFor(() => expect([...told.renewed]).toEqual([10n, 11n]), patience);
    connection.renew({ id: 12n, by: undefined });
    await vi.waitFor(() => expect(told.renewed).toContain(12n), patience);
    expect(told.ended).toBeUndefined();
  });

  test('because of its lower size limit fails only that request', async () => {
    const server = await start({ limits: { maxReceiveBytes: 600_000 } });
    const { connection, told } = await connect(server);
    propose(connection, 1, 100);
    propose(connection, 2, 599_990);
    await expect(connection.call('/any', Buffer.alloc(599_990), undefined)).rejects.toMatchObject({ code: 'tooLarge' });
    propose(connection, 3, 599_000);
    await expect(connection.call('/any', Buffer.alloc(599_000), undefined)).resolves.toBeInstanceOf(Buffer);
    await vi.waitFor(() => expect(server.replica.state.keyCount).toBe(2), patience);
    expect(told).toMatchObject({ ended: undefined, refused: [{ sequence: 2, code: 'tooLarge' }] });
  });
});
