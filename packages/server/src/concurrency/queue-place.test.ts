import type { Command } from '@tenure/core';
import { expect, test, vi } from 'vitest';
import { ProposalError } from '../replica/proposal-error.ts';
import { statusNamed } from '../api/status-of.ts';
import { QueueServer, refusal } from './testing/queue-server.ts';

function deletes({ kind, ...command }: Command): boolean {
  return kind === 'txn' && 'txn' in command && command.txn.success[0]?.kind === 'deleteRange';
}

/** A server on which lease 1 holds the lock 'n'. */
async function heldServer(): Promise<QueueServer> {
  const server = new QueueServer();
  await server.grant(1n, 2n, 3n, 4n);
  await server.client().lock('n', 1n);
  return server;
}

async function untilQueued(server: QueueServer, keys: readonly string[]): Promise<void> {
  await vi.waitFor(() => expect(server.keys).toEqual(keys), { timeout: 10_000, interval: 1 });
}

test('the end of a holder wakes one of many waiters, which reads the queue once', async () => {
  const server = new QueueServer();
  const leases = Array.from({ length: 300 }, (_, at) => BigInt(at + 1));
  await server.grant(...leases);
  const order: bigint[] = [];
  const calls = leases.map((lease) =>
    server
      .client()
      .lock('n', lease)
      .then(() => order.push(lease)),
  );
  // Each has read who is next to it, and has its two watches.
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(2 * 299), { timeout: 20_000, interval: 5 });
  await vi.waitFor(() => expect(order).toEqual([1n]));
  const scansBefore = server.scans;
  await server.delete('n/1');
  await vi.waitFor(() => expect(order).toEqual([1n, 2n]));
  expect(server.scans).toBe(scansBefore + 1);
  for (const lease of leases.slice(1)) {
    await vi.waitFor(() => expect(order.at(-1)).toBe(lease), { timeout: 10_000, interval: 1 });
    await server.delete(`n/${lease.toString(16)}`);
  }
  await Promise.all(calls);
  expect(order).toEqual(leases);
  expect(server.scans).toBe(scansBefore + 299);
  expect(server.watch.counts).toMatchObject({ streams: 0, watchers: 0 });
});

test('a waiter in the middle that vanishes lets the one behind it wait for the one before', async () => {
  const server = await heldServer();
  const [second, third] = [server.client(), server.client()];
  const vanished = refusal(second.lock('n', 2n));
  await untilQueued(server, ['n/1', 'n/2']);
  let isHeld = false;
  const waiter = third.lock('n', 3n).then(() => (isHeld = true));
  await untilQueued(server, ['n/1', 'n/2', 'n/3']);
  second.vanish();
  expect(await vanished).toBe('1 the call is over');
  await untilQueued(server, ['n/1', 'n/3']);
  await server.propose({ kind: 'leaseGrant', id: 9n, ttlMs: 60_000, label: '' });
  expect(isHeld).toBe(false);
  await server.delete('n/1');
  await waiter;
});

test('the key of a client that vanishes while it is created is deleted, also where none is older', async () => {
  for (const held of [true, false]) {
    const server = held ? await heldServer() : new QueueServer();
    if (!held) await server.grant(2n);
    const client = server.client();
    server.beforeApply = () => {
      server.beforeApply = () => {};
      client.vanish();
    };
    expect(await refusal(client.lock('n', 2n))).toBe('1 the call is over');
    expect(server.keys).toEqual(held ? ['n/1'] : []);
  }
});

test('a holder that asks again and vanishes still holds', async () => {
  const server = await heldServer();
  const client = server.client();
  server.beforeApply = () => client.vanish();
  expect(await refusal(client.lock('n', 1n))).toBe('1 the call is over');
  expect(server.keys).toEqual(['n/1']);
});

test('of two calls with one key the last to vanish takes it, and none once the other was answered', async () => {
  const server = await heldServer();
  const [one, other] = [server.client(), server.client()];
  const calls = [refusal(one.lock('n', 2n)), refusal(other.lock('n', 2n))];
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(4));
  one.vanish();
  await calls[0];
  expect(server.keys).toEqual(['n/1', 'n/2']);
  other.vanish();
  await calls[1];
  expect(server.keys).toEqual(['n/1']);

  const [winner, loser] = [server.client(), server.client()];
  const won = winner.lock('n', 3n);
  await untilQueued(server, ['n/1', 'n/3']);
  const lost = refusal(loser.lock('n', 3n));
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(4));
  // The last read of the loser waits until its client has vanished.
  let goOn: () => void = () => {};
  const isLoserReading = new Promise<void>((reading) => {
    let reads = 0;
    server.beforeRead = () => {
      reads += 1;
      if (reads === 1) return Promise.resolve();
      reading();
      return new Promise((resolve) => (goOn = resolve));
    };
  });
  await server.delete('n/1');
  await won;
  await isLoserReading;
  loser.vanish();
  goOn();
  expect(await lost).toBe('1 the call is over');
  expect(server.keys).toEqual(['n/3']);
});

test('a key is deleted by another attempt when the first has no outcome, and given up after five', async () => {
  for (const failures of [2, 5]) {
    const server = await heldServer();
    const client = server.client();
    const call = refusal(client.lock('n', 2n));
    await untilQueued(server, ['n/1', 'n/2']);
    let attempts = 0;
    server.beforeApply = (command) => {
      if (!deletes(command)) return;
      attempts += 1;
      if (attempts <= failures) throw new ProposalError('timeout', 'no outcome');
    };
    client.vanish();
    await call;
    expect(attempts).toBe(Math.min(failures + 1, 5));
    expect(server.keys).toEqual(failures < 5 ? ['n/1'] : ['n/1', 'n/2']);
  }
});

test('a key that was deleted and created again by others is not deleted for the call that lost it', async () => {
  const server = await heldServer();
  const call = refusal(server.client().lock('n', 2n));
  await untilQueued(server, ['n/1', 'n/2']);
  await server.delete('n/2');
  await server.propose({
    kind: 'put',
    put: { key: 'n/2', value: '', lease: 2n, prevKv: false, ignoreValue: false, ignoreLease: false },
  });
  expect(await call).toBe('2 mutex: session is expired');
  expect(server.keys).toEqual(['n/1', 'n/2']);
});

test('a waiter whose key goes in the moment in which it becomes the oldest does not hold', async () => {
  const server = await heldServer();
  const call = refusal(server.client().lock('n', 2n));
  await untilQueued(server, ['n/1', 'n/2']);
  // The deletion of its key is known to the log, and here only once the read has caught up with it.
  server.beforeRead = () => {
    server.beforeRead = () => Promise.resolve();
    return server.delete('n/2');
  };
  await server.delete('n/1');
  expect(await call).toBe('2 mutex: session is expired');
});

test('a waiter goes on when the history is compacted', async () => {
  const server = await heldServer();
  let isHeld = false;
  const waiter = server.client().lock('n', 2n);
  void waiter.then(() => (isHeld = true));
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(2));
  await server.propose({ kind: 'compact', revision: server.state.currentRevision });
  expect(isHeld).toBe(false);
  await server.delete('n/1');
  await waiter;
});

test('waiters of a server that stops are told so, and leave no keys', async () => {
  const server = await heldServer();
  const client = server.client();
  const calls = [refusal(client.lock('n', 2n)), refusal(client.campaign('n', 3n, 'x'))];
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(4));
  server.watch.close(statusNamed('Stopped'));
  expect(await Promise.all(calls)).toEqual(['14 etcdserver: server stopped', '14 etcdserver: server stopped']);
  expect(server.keys).toEqual(['n/1']);
});

test('calls beyond the limit are refused before they change anything, and a call that ended makes room', async () => {
  const server = new QueueServer({ maxWaitingCalls: 2, maxObservers: 1 });
  await server.grant(1n, 2n, 3n, 4n);
  const [client, gone] = [server.client(), server.client()];
  await client.lock('n', 1n);
  const waiter = client.lock('n', 2n);
  await untilQueued(server, ['n/1', 'n/2']);
  const vanished = refusal(gone.campaign('n', 3n, ''));
  await untilQueued(server, ['n/1', 'n/2', 'n/3']);
  const full = '8 tenure: this server has 2 calls of Lock and Campaign, which is the limit; use another server';
  expect(await refusal(client.lock('m', 4n))).toBe(full);
  expect(await refusal(client.campaign('m', 4n, ''))).toBe(full);
  expect(server.keys).toEqual(['n/1', 'n/2', 'n/3']);
  gone.vanish();
  await vanished;
  await client.lock('m', 4n);
  await server.delete('n/1');
  await waiter;
});
