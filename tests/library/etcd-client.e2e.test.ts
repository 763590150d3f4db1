import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { compare, EtcdClient, EtcdError, operation } from 'tenure/etcd';
import type { WatchBatch } from 'tenure/etcd';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';
import type { EtcdServer } from './etcd-servers.ts';

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('the client of etcd v3 on $name', (kind) => {
  let server: EtcdServer;
  const clients: EtcdClient[] = [];

  beforeAll(async () => {
    server = await kind.start();
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });
  afterAll(() => server.dispose());

  function clientOf(endpoints: string | string[] = server.endpoint, timeoutMs = 20_000): EtcdClient {
    const client = new EtcdClient({ endpoints, timeoutMs });
    clients.push(client);
    return client;
  }

  test('puts, gets and deletes, with text and with bytes', async () => {
    const { kv } = clientOf();
    const first = await kv.put('kv/a', 'one');
    const bytes = new Uint8Array([0, 255, 128]);
    const second = await kv.put('kv/b', bytes, { prevKv: true });
    expect(second.prevKv).toBe(undefined);
    const { kvs, count, more } = await kv.get({ prefix: 'kv/' }, { limit: 1 });
    expect([kvs.length, count, more]).toEqual([1, 2n, true]);
    expect([kvs[0]?.key, kvs[0]?.value, kvs[0]?.createRevision]).toStrictEqual(['kv/a', 'one', first.revision]);
    expect((await kv.getOne('kv/b'))?.valueBytes).toStrictEqual(bytes);
    const newest = await kv.get({ key: 'kv/a', end: 'kv/c' }, { sortBy: 'modRevision', order: 'descending' });
    expect(newest.kvs.map(({ key }) => key)).toEqual(['kv/b', 'kv/a']);
    const gone = await kv.delete({ prefix: 'kv/' }, { prevKv: true });
    expect([gone.deleted, gone.prevKvs[0]?.value]).toEqual([2n, 'one']);
    expect(await kv.getOne('kv/a')).toBe(undefined);
    expect((await kv.getOne('kv/a', { revision: first.revision }))?.value).toBe('one');
  });

  test('a transaction does one thing or the other', async () => {
    const { kv } = clientOf();
    const create = kv
      .txn()
      .if(compare.isAbsent('txn/a'))
      .do(operation.put('txn/a', 'mine'), operation.get('txn/a'))
      .else(operation.get('txn/a'), operation.delete('txn/none'));
    const made = await create.commit();
    expect(made.succeeded).toBe(true);
    const [put, got] = made.results;
    expect(put?.kind).toBe('put');
    if (got?.kind !== 'get') throw new Error(`the second result is a ${got?.kind}`);
    expect(got.kvs[0]?.createRevision).toBe(made.revision);
    const again = await create.commit();
    expect([again.succeeded, again.results.map((result) => result.kind)]).toEqual([false, ['get', 'delete']]);
    const owner = compare.createRevision('txn/a', '=', made.revision);
    expect((await kv.txn().if(owner).do(operation.put('txn/a', 'guarded')).commit()).succeeded).toBe(true);
    const refused = kv.txn().do(operation.put('txn/a', '1'), operation.put('txn/a', '2')).commit();
    await expect(refused).rejects.toMatchObject({
      name: 'EtcdError',
      details: 'etcdserver: duplicate key given in txn request',
    });
  });

  test('leases are granted, renewed on one stream, inspected and revoked', async () => {
    const { kv, lease } = clientOf();
    const granted = await lease.grant({ ttlMs: 60_000, id: 4711n });
    expect(granted).toStrictEqual({ id: 4711n, ttlMs: 60_000 });
    await kv.put('leased', 'x', { lease: granted.id });
    const life = await lease.timeToLive(granted.id, { keys: true });
    expect(life?.remainingMs).toBeGreaterThan(0);
    expect(life?.grantedMs).toBe(60_000);
    expect(life?.keys.length).toBe(1);
    expect(await lease.list()).toContain(4711n);
    await expect(lease.grant({ ttlMs: 1000, id: 4711n })).rejects.toMatchObject({
      details: 'etcdserver: lease already exists',
    });
    const others = await Promise.all(Array.from({ length: 200 }, () => lease.grant({ ttlMs: 60_000 })));
    const renewed = await Promise.all([...others, granted, { id: 1n }].map(({ id }) => lease.keepAlive(id)));
    expect(new Set(renewed.slice(0, -1))).toStrictEqual(new Set([60_000]));
    expect(renewed.at(-1)).toBe(0);
    expect(await lease.revoke(granted.id)).toBe(true);
    expect(await lease.revoke(granted.id)).toBe(false);
    expect(await kv.getOne('leased')).toBe(undefined);
    expect(await lease.timeToLive(granted.id)).toBe(undefined);
  });

  test('a watch reports each change once over a restart, and fails on a compacted revision', async () => {
    const client = clientOf();
    const { kv } = client;
    const stop = new AbortController();
    const { revision } = await kv.put('watch/0', '0');
    const values: string[] = [];
    const revisions: bigint[] = [];
    let stands: (batch: WatchBatch) => void = () => undefined;
    const isWatching = new Promise<WatchBatch>((resolve) => (stands = resolve));
    const seen = (async (): Promise<void> => {
      for await (const batch of client.watch({ prefix: 'watch/' }, { fromRevision: revision, signal: stop.signal })) {
        stands(batch);
        for (const { kind: what, kv: changed } of batch.events) {
          values.push(`${what} ${changed.value}`);
          revisions.push(changed.modRevision);
        }
        if (values.length === 6) stop.abort();
      }
    })();
    expect((await isWatching).events).toEqual([]);
    await kv.put('watch/1', '1');
    await server.kill();
    await server.start();
    for (const value of ['2', '3']) await putSurely(kv, `watch/${value}`, value);
    await kv.delete({ prefix: 'watch/3' });
    await kv.put('watch/4', '4');
    await seen;
    expect(values).toEqual(['put 0', 'put 1', 'put 2', 'put 3', 'delete ', 'put 4']);
    expect(revisions).toStrictEqual(revisions.toSorted((one, other) => (one < other ? -1 : 1)));
    await kv.compact(revisions.at(-1)!);
    const late = client.watch({ prefix: 'watch/' }, { fromRevision: revision });
    const reading = (async () => {
      for await (const _ of late);
    })();
    await expect(reading).rejects.toMatchObject({
      name: 'EtcdError',
      etcdCode: 'compacted',
      compactRevision: revisions.at(-1),
    });
  });

  test('a watch of an empty range is refused, and not tried again', async () => {
    const client = clientOf();
    for (const range of [
      { key: 'b', end: 'a' },
      { key: 'a', end: 'a' },
    ]) {
      const next = client.watch(range).next();
      await expect(next).rejects.toMatchObject({ etcdCode: 'invalid', details: 'mvcc: watcher range is empty' });
    }
  });

  test('moves to an endpoint that answers', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    try {
      const { kv } = clientOf(['127.0.0.1:1', `127.0.0.1:${port}`, server.endpoint]);
      await kv.put('moved', 'yes');
      expect((await kv.getOne('moved'))?.value).toBe('yes');
    } finally {
      silent.close();
    }
  });

  test('reports why there is no answer, and rejects pending calls when it is closed', async () => {
    const client = clientOf('127.0.0.1:1', 500);
    await expect(client.kv.get('a')).rejects.toMatchObject({
      name: 'EtcdError',
      etcdCode: 'unreachable',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    const { signal } = new AbortController();
    const aborted = AbortSignal.abort(new Error('not now'));
    await expect(clientOf().kv.get('a', { signal: aborted })).rejects.toMatchObject({ message: 'not now' });
    expect(signal.aborted).toBe(false);
    const waiting = clientOf('127.0.0.1:1')
      .kv.get('a')
      .catch((error: unknown) => error);
    for (const one of clients) one.close();
    expect(await waiting).toMatchObject({ etcdCode: 'closed' });
    expect(() => new EtcdClient({ endpoints: 'no good' })).toThrow(expect.objectContaining({ name: 'UsageError' }));
  });

  test('the status of each endpoint, or its error', async () => {
    const { maintenance } = clientOf([server.endpoint, '127.0.0.1:1'], 1000);
    const [one, two] = await maintenance.statuses();
    if (one?.status !== 'fulfilled') throw new Error('the endpoint did not answer', { cause: one?.reason });
    expect(one.value.leader).not.toBe(0n);
    expect(one.value.memberId).not.toBe(0n);
    expect(one.value.tenureVersion !== undefined).toBe(kind.name === 'Tenure');
    expect(two?.status).toBe('rejected');
    expect((await maintenance.members()).length).toBe(1);
  });
});

/** The first call after a restart may use the old connection; this put is harmless if repeated. */
async function putSurely(kv: EtcdClient['kv'], key: string, value: string): Promise<void> {
  for (;;) {
    if ((await kv.getOne(key))?.value === value) return;
    await kv.put(key, value).catch((error: unknown) => expect(error).toBeInstanceOf(EtcdError));
  }
}
