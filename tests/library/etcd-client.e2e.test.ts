import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { compare, EtcdClient, EtcdError, operation } from 'tenure/etcd';
import type { WatchBatch } from 'tenure/etcd';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
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
    assert.equal(second.prevKv, undefined);
    const { kvs, count, more } = await kv.get({ prefix: 'kv/' }, { limit: 1 });
    assert.deepEqual([kvs.length, count, more], [1, 2n, true]);
    assert.deepEqual([kvs[0]?.key, kvs[0]?.value, kvs[0]?.createRevision], ['kv/a', 'one', first.revision]);
    assert.deepEqual((await kv.getOne('kv/b'))?.valueBytes, bytes);
    const newest = await kv.get({ key: 'kv/a', end: 'kv/c' }, { sortBy: 'modRevision', order: 'descending' });
    assert.deepEqual(
      newest.kvs.map(({ key }) => key),
      ['kv/b', 'kv/a'],
    );
    const gone = await kv.delete({ prefix: 'kv/' }, { prevKv: true });
    assert.deepEqual([gone.deleted, gone.prevKvs[0]?.value], [2n, 'one']);
    assert.equal(await kv.getOne('kv/a'), undefined);
    assert.equal((await kv.getOne('kv/a', { revision: first.revision }))?.value, 'one');
  });

  test('a transaction does one thing or the other', async () => {
    const { kv } = clientOf();
    const create = kv
      .txn()
      .if(compare.isAbsent('txn/a'))
      .do(operation.put('txn/a', 'mine'), operation.get('txn/a'))
      .else(operation.get('txn/a'), operation.delete('txn/none'));
    const made = await create.commit();
    assert.equal(made.succeeded, true);
    const [put, got] = made.results;
    assert.ok(put?.kind === 'put' && got?.kind === 'get' && got.kvs[0]?.createRevision === made.revision);
    const again = await create.commit();
    assert.deepEqual([again.succeeded, again.results.map((result) => result.kind)], [false, ['get', 'delete']]);
    const owner = compare.createRevision('txn/a', '=', made.revision);
    assert.equal((await kv.txn().if(owner).do(operation.put('txn/a', 'guarded')).commit()).succeeded, true);
    const refused = kv.txn().do(operation.put('txn/a', '1'), operation.put('txn/a', '2')).commit();
    await assert.rejects(refused, { name: 'EtcdError', details: 'etcdserver: duplicate key given in txn request' });
  });

  test('leases are granted, renewed on one stream, asked for and revoked', async () => {
    const { kv, lease } = clientOf();
    const granted = await lease.grant({ ttlMs: 60_000, id: 4711n });
    assert.deepEqual(granted, { id: 4711n, ttlMs: 60_000 });
    await kv.put('leased', 'x', { lease: granted.id });
    const life = await lease.timeToLive(granted.id, { keys: true });
    assert.ok(life !== undefined && life.remainingMs > 0 && life.grantedMs === 60_000 && life.keys.length === 1);
    assert.ok((await lease.list()).includes(4711n));
    await assert.rejects(lease.grant({ ttlMs: 1000, id: 4711n }), { details: 'etcdserver: lease already exists' });
    const others = await Promise.all(Array.from({ length: 200 }, () => lease.grant({ ttlMs: 60_000 })));
    const renewed = await Promise.all([...others, granted, { id: 1n }].map(({ id }) => lease.keepAlive(id)));
    assert.deepEqual(new Set(renewed.slice(0, -1)), new Set([60_000]));
    assert.equal(renewed.at(-1), 0);
    assert.equal(await lease.revoke(granted.id), true);
    assert.equal(await lease.revoke(granted.id), false);
    assert.equal(await kv.getOne('leased'), undefined);
    assert.equal(await lease.timeToLive(granted.id), undefined);
  });

  test('a watch tells each change once over a restart, and what is compacted is an error', async () => {
    const client = clientOf();
    const { kv } = client;
    const stop = new AbortController();
    const { revision } = await kv.put('watch/0', '0');
    const values: string[] = [];
    const revisions: bigint[] = [];
    let stands: (batch: WatchBatch) => void = () => undefined;
    const standing = new Promise<WatchBatch>((resolve) => (stands = resolve));
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
    assert.deepEqual((await standing).events, []);
    await kv.put('watch/1', '1');
    await server.kill();
    await server.start();
    for (const value of ['2', '3']) await putSurely(kv, `watch/${value}`, value);
    await kv.delete({ prefix: 'watch/3' });
    await kv.put('watch/4', '4');
    await seen;
    assert.deepEqual(values, ['put 0', 'put 1', 'put 2', 'put 3', 'delete ', 'put 4']);
    assert.deepEqual(
      revisions,
      revisions.toSorted((one, other) => (one < other ? -1 : 1)),
    );
    await kv.compact(revisions.at(-1)!);
    const late = client.watch({ prefix: 'watch/' }, { fromRevision: revision });
    const reading = (async () => {
      for await (const _ of late);
    })();
    await assert.rejects(reading, (error: unknown) => {
      return error instanceof EtcdError && error.etcdCode === 'compacted' && error.compactRevision === revisions.at(-1);
    });
  });

  test('moves to the endpoint that answers', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    try {
      const { kv } = clientOf(['127.0.0.1:1', `127.0.0.1:${port}`, server.endpoint]);
      await kv.put('moved', 'yes');
      assert.equal((await kv.getOne('moved'))?.value, 'yes');
    } finally {
      silent.close();
    }
  });

  test('says why there is no answer, and ends what waits when it is closed', async () => {
    const client = clientOf('127.0.0.1:1', 500);
    await assert.rejects(client.kv.get('a'), { name: 'EtcdError', etcdCode: 'unreachable', message: /ECONNREFUSED/ });
    const { signal } = new AbortController();
    const aborted = AbortSignal.abort(new Error('not now'));
    await assert.rejects(clientOf().kv.get('a', { signal: aborted }), { message: 'not now' });
    assert.equal(signal.aborted, false);
    const waiting = assert.rejects(clientOf('127.0.0.1:1').kv.get('a'), { etcdCode: 'closed' });
    for (const one of clients) one.close();
    await waiting;
    assert.throws(() => new EtcdClient({ endpoints: 'no good' }), { name: 'UsageError' });
  });

  test('the status of each endpoint, or why there is none', async () => {
    const { maintenance } = clientOf([server.endpoint, '127.0.0.1:1'], 1000);
    const [one, two] = await maintenance.statuses();
    assert.ok(one?.status === 'fulfilled' && one.value.leader !== 0n && one.value.memberId !== 0n);
    assert.equal(one.value.tenureVersion !== undefined, kind.name === 'Tenure');
    assert.equal(two?.status, 'rejected');
    assert.equal((await maintenance.members()).length, 1);
  });
});

/** The first call after a restart may find the connection of before it; this put may be done twice without harm. */
async function putSurely(kv: EtcdClient['kv'], key: string, value: string): Promise<void> {
  for (;;) {
    if ((await kv.getOne(key))?.value === value) return;
    await kv.put(key, value).catch((error: unknown) => assert.ok(error instanceof EtcdError));
  }
}
