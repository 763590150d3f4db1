import { expect, test, vi } from 'vitest';
import { statusNamed } from '../api/status-of.ts';
import { QueueServer, refusal } from './testing/queue-server.ts';

async function put(server: QueueServer, key: string, value: string): Promise<void> {
  const options = { lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  await server.propose({ kind: 'put', put: { key, value, ...options } });
}

test('a slow observer misses values after a compaction, but not the last, and sees none twice', async () => {
  const server = new QueueServer();
  await put(server, 'n/1', 'one');
  const client = server.client();
  const seen: string[] = [];
  let goOn: () => void = () => {};
  const observed = refusal(
    client.observe('n', (value) => {
      seen.push(value);
      return seen.length <= 2 ? new Promise((resolve) => (goOn = resolve)) : undefined;
    }),
  );
  const compact = async (): Promise<void> => {
    await server.propose({ kind: 'compact', revision: server.state.currentRevision });
  };
  await vi.waitFor(() => expect(seen).toEqual(['one']));
  await put(server, 'other', '');
  await put(server, 'other', '');
  await compact();
  goOn();
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(1));
  await put(server, 'n/1', 'two');
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(1));
  expect(seen).toEqual(['one', 'two']);
  await put(server, 'n/1', 'three');
  await put(server, 'n/1', 'four');
  await put(server, 'n/1', 'five');
  await compact();
  goOn();
  await vi.waitFor(() => expect(seen.at(-1)).toBe('five'));
  await put(server, 'n/2', 'younger');
  await server.delete('n/1');
  await vi.waitFor(() => expect(seen.at(-1)).toBe('younger'));
  expect(new Set(seen).size).toBe(seen.length);
  client.vanish();
  expect(await observed).toBe('1 the call is over');
  expect(server.watch.counts).toMatchObject({ streams: 0, watchers: 0 });
});

test('a waiting observer is told that its server stops', async () => {
  const server = new QueueServer();
  const observed = refusal(server.client().observe('n', () => {}));
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(1));
  server.watch.close(statusNamed('Stopped'));
  expect(await observed).toBe('14 etcdserver: server stopped');
});

test('observers beyond the limit are refused', async () => {
  const server = new QueueServer({ maxObservers: 1 });
  const client = server.client();
  const observed = refusal(client.observe('n', () => {}));
  await vi.waitFor(() => expect(server.watch.counts.watchers).toBe(1));
  const full = '8 tenure: this server has 1 calls of Observe, which is the limit; use another server';
  expect(await refusal(client.observe('m', () => {}))).toBe(full);
  client.vanish();
  await observed;
});
