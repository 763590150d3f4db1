import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CuttingProxy, EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, LoggedEntry, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, firstChunk, readBehind, texts } from '../testing/engine-case.ts';
import type { EngineState } from '../engine-health.ts';
import { certainAppend } from './testing/certain-append.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

const effort = inject('effort');
const rounds = { commit: 100, ci: 500, soak: 5_000 }[effort];
const cuts = { commit: 4, ci: 10, soak: 200 }[effort];
const kills = { commit: 2, ci: 3, soak: 50 }[effort];

describe.skipIf(!hasEtcd())('the etcd engine, when etcd or the way to it fails', () => {
  let etcd: EtcdProcess;
  let proxy: CuttingProxy;
  const logs = new EtcdLogs();

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
    proxy = await CuttingProxy.before(() => etcd.port);
  });

  afterEach(async () => {
    proxy.comeBack();
    proxy.cut();
    await logs.closeAll();
  });

  afterAll(async () => {
    await proxy.close();
    await etcd.dispose();
  });

  test('of two engines that append at the same place exactly one wins, in each of many rounds', async () => {
    const prefix = logs.newPrefix();
    const rivals = [await logs.open(etcd.endpoint, prefix), await logs.open(etcd.endpoint, prefix)];
    let at = logStart;
    const won: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const attempts = rivals.map((rival, who) => rival.append([entry(`round ${round} by ${who}`)], at));
      const outcomes = await Promise.allSettled(attempts);
      const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
      const loser = outcomes[1 - winner];
      assert.ok(loser?.status === 'rejected', `round ${round}: both have won`);
      at = await (attempts[winner] as Promise<Position>);
      const { code, tail } = loser.reason as EngineError;
      assert.deepEqual({ code, tail }, { code: 'conflict', tail: at });
      won.push(`round ${round} by ${winner}`);
    }
    assert.deepEqual(texts(await readBehind(rivals[0]!, logStart, rounds)), won);
  });

  test('an append whose reply is lost is unknown, and what follows tells that it was written', async () => {
    const prefix = logs.newPrefix();
    const direct = await logs.open(etcd.endpoint, prefix);
    const engine = await logs.open(proxy.endpoint, prefix);
    const one = await engine.append([entry('one')], logStart);
    proxy.holdReplies();
    const lost = assert.rejects(engine.append([entry('two')], one), { name: 'EngineError', code: 'unknown' });
    const [written] = await readBehind(direct, one, 1);
    proxy.cut();
    await lost;
    assert.deepEqual(texts(await readBehind(engine, one, 1)), ['two']);
    await assert.rejects(engine.append([entry('two')], one), { code: 'conflict', tail: written!.position });
    assert.equal((await direct.tail()).index, 2);
  });

  test('a connection that answers nothing any more is given up after one request, and a new one is made', async () => {
    const silent = await CuttingProxy.before(etcd.port);
    try {
      const prefix = logs.newPrefix();
      const engine = await logs.open(`127.0.0.1:${silent.port}`, prefix, { requestTimeoutMs: 500 });
      const one = await engine.append([entry('one')], logStart);
      const following = readBehind(engine, one, 1);
      // What goes over the old connections is lost from now on, and nobody is told; new ones get through.
      silent.silence();
      silent.forget();
      await assert.rejects(engine.append([entry('two')], one), { name: 'EngineError', code: 'unknown' });
      assert.deepEqual(await engine.tail(), one);
      const direct = await logs.open(etcd.endpoint, prefix);
      await direct.append([entry('another')], one);
      assert.deepEqual(texts(await following), ['another']);
    } finally {
      await silent.close();
    }
  });

  test('a large append whose parts get through and whose transaction does not is as if it had not been', async () => {
    const prefix = logs.newPrefix();
    const engine = await logs.open(proxy.endpoint, prefix, { requestTimeoutMs: 500 });
    const direct = await logs.open(etcd.endpoint, prefix);
    const large = entries(1, 3 * 1024 * 1024);
    proxy.holdReplies();
    await assert.rejects(engine.append(large, logStart), { name: 'EngineError', code: 'unavailable' });
    proxy.cut();
    assert.deepEqual(await direct.tail(), logStart);
    const end = await certainAppend(engine, large[0]!, logStart);
    await direct.saveSnapshot(end, chunksOf('state'));
    await direct.trim(1);
    assert.deepEqual(keysUnder(etcd, `${prefix}/part/`), []);
  });

  test('while etcd is away appends are certainly not written, followers wait, and then all goes on', async () => {
    const prefix = logs.newPrefix();
    const states: EngineState[] = [];
    const engine = await logs.open(proxy.endpoint, prefix, {
      requestTimeoutMs: 500,
      onState: (state) => states.push(state),
    });
    const direct = await logs.open(etcd.endpoint, prefix);
    const one = await engine.append([entry('one')], logStart);
    const follower = engine.follow(one, new AbortController().signal)[Symbol.asyncIterator]();
    const next = follower.next() as Promise<{ value: readonly LoggedEntry[] }>;
    proxy.goAway();
    await assert.rejects(engine.tail(), { name: 'EngineError', code: 'unavailable', message: /127\.0\.0\.1/ });
    await assert.rejects(engine.append([entry('not sent')], one), { name: 'EngineError', code: 'unavailable' });
    assert.equal(states.length, 1);
    const [away] = states;
    if (away === undefined || away.reachable) throw new Error('etcd was not told to be away');
    assert.equal(away.trouble, 'unreachable');
    assert.match(away.reason, /127\.0\.0\.1/);
    const two = await direct.append([entry('two')], one);
    proxy.comeBack();
    assert.deepEqual(texts((await next).value), ['two']);
    await engine.append([entry('three')], two);
    assert.deepEqual(states.at(-1), { reachable: true });
    const { value } = (await follower.next()) as { value: readonly LoggedEntry[] };
    assert.deepEqual(texts(value), ['three']);
    await follower.return?.();
  });

  test('a follower goes on over connections that are cut again and again, each entry once', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const reader = await logs.open(proxy.endpoint, prefix);
    const reading = readBehind(reader, logStart, 40 * cuts);
    let at = logStart;
    for (let number = 0; number < 40 * cuts; number++) {
      at = await writer.append([entry(`${number}`)], at);
      if (number % 40 === 20) proxy.cut();
    }
    assert.deepEqual(
      texts(await reading),
      Array.from({ length: 40 * cuts }, (_, number) => `${number}`),
    );
  });

  test('a watch that has gone silent is replaced by one on another endpoint', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const reader = await logs.open(proxy.endpoint, prefix, {
      endpoints: [proxy.endpoint, etcd.endpoint],
      requestTimeoutMs: 500,
    });
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    const next = async (): Promise<string[]> => texts((await follower.next()).value ?? []);
    let at = await writer.append([entry('one')], logStart);
    assert.deepEqual(await next(), ['one']);
    const heard = next();
    proxy.holdReplies();
    at = await writer.append([entry('two')], at);
    assert.deepEqual(await heard, ['two']);
    await writer.append([entry('three')], at);
    assert.deepEqual(await next(), ['three']);
    await follower.return?.();
  });

  test('a follower goes on behind a compaction of what its watch would have resumed from', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const reader = await logs.open(proxy.endpoint, prefix);
    let at = await writer.append([entry('one')], logStart);
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    assert.equal((await follower.next()).done, false);
    const next = follower.next() as Promise<{ value: readonly LoggedEntry[] }>;
    proxy.goAway();
    at = await writer.append([entry('two')], at);
    await writer.append([entry('three')], at);
    compactNow(etcd);
    proxy.comeBack();
    assert.deepEqual(texts((await next).value), ['two', 'three']);
    await follower.return?.();
  });

  test('etcd killed and started again under load: nothing acknowledged is lost, nothing is there twice', async () => {
    const prefix = logs.newPrefix();
    const engine = await logs.open(etcd.endpoint, prefix, { requestTimeoutMs: 2000 });
    const other = await logs.open(etcd.endpoint, prefix, { requestTimeoutMs: 2000 });
    const entriesPerKill = 100;
    const count = entriesPerKill * kills;
    const reading = readBehind(other, logStart, count);
    const positions: Position[] = [];
    const writing = write(engine, count, positions);
    for (let kill = 0; kill < kills; kill++) {
      while (positions.length < entriesPerKill * kill + 50) await nextTurn();
      // One of the next appends is out, each time at another point of its way.
      for (let turn = 0; turn < kill; turn++) await nextTurn();
      await etcd.kill();
      await etcd.start();
    }
    await writing;
    const read = await reading;
    assert.deepEqual(
      read.map(({ position }) => position),
      positions,
    );
    assert.deepEqual(await other.tail(), positions.at(-1));
  });

  test('a log that somebody removes, replaces or shortens is not followed any further', async () => {
    const removed = logs.newPrefix();
    const replaced = logs.newPrefix();
    const shortened = logs.newPrefix();
    const followed: Promise<unknown>[] = [];
    const keep = new Map<string, string>();
    for (const prefix of [removed, replaced, shortened]) {
      const engine = await logs.open(proxy.endpoint, prefix);
      const one = await engine.append([entry('one')], logStart);
      keep.set(prefix, etcd.control('get', '--print-value-only', `${prefix}/head`).trimEnd());
      const two = await engine.append([entry('two')], one);
      followed.push(assert.rejects(firstChunk(engine, two), { name: 'EngineError', code: 'diverged' }));
    }
    proxy.goAway();
    etcd.control('del', '--prefix', `${removed}/`);
    etcd.control('del', '--prefix', `${replaced}/`);
    const impostor = await logs.open(etcd.endpoint, replaced);
    await impostor.append([entry('one'), entry('two')], logStart);
    etcd.control('del', `${shortened}/log/0000000000000002`);
    etcd.control('put', `${shortened}/head`, keep.get(shortened)!);
    proxy.comeBack();
    await Promise.all(followed);
  });
});

async function write(engine: LogEngine, count: number, written: Position[]): Promise<void> {
  let at = logStart;
  for (let number = 0; number < count; number++) {
    const bytes = entry(`entry ${number}`);
    const wanted = nextPosition(at, bytes);
    at = await certainAppend(engine, bytes, at);
    assert.deepEqual(at, wanted);
    written.push(at);
  }
}

function keysUnder(etcd: EtcdProcess, prefix: string): string[] {
  return etcd.control('get', '--prefix', '--keys-only', prefix).split('\n').filter(Boolean);
}

function compactNow(etcd: EtcdProcess): void {
  const status = JSON.parse(etcd.control('endpoint', 'status', '--write-out=json')) as {
    Status: { header: { revision: number } };
  }[];
  etcd.control('compact', '--physical', `${status[0]!.Status.header.revision}`);
}
