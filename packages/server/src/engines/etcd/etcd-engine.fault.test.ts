import { setImmediate as nextTurn } from 'node:timers/promises';
import { CuttingProxy, EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LogEngine, LoggedEntry, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, firstChunk, readBehind, texts } from '../testing/engine-case.ts';
import type { EngineState } from '../engine-health.ts';
import { certainAppend } from './testing/certain-append.ts';
import { EtcdLogs } from './testing/etcd-logs.ts';

const effort = inject('effort');
const rounds = { commit: 100, ci: 500, soak: 5_000 }[effort];
const cuts = { commit: 4, ci: 10, soak: 200 }[effort];
const kills = { commit: 2, ci: 3, soak: 50 }[effort];

describe.skipIf(!hasEtcd())('the etcd engine, when etcd or the connection to it fails', () => {
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
      const attempts = rivals.map((rival, index) => rival.append([entry(`round ${round} by ${index}`)], at));
      const outcomes = await Promise.allSettled(attempts);
      const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
      const loser = outcomes[1 - winner];
      at = await (attempts[winner] as Promise<Position>);
      const lost = { status: 'rejected', reason: { code: 'conflict', tail: at } };
      expect(loser, `round ${round}`).toMatchObject(lost);
      won.push(`round ${round} by ${winner}`);
    }
    expect(texts(await readBehind(rivals[0]!, logStart, rounds))).toEqual(won);
  });

  test('an append whose reply is lost is unknown, and reading the log shows that it was written', async () => {
    const prefix = logs.newPrefix();
    const direct = await logs.open(etcd.endpoint, prefix);
    const engine = await logs.open(proxy.endpoint, prefix);
    const one = await engine.append([entry('one')], logStart);
    proxy.holdReplies();
    const lost = engine.append([entry('two')], one).catch((error: unknown) => error);
    const [written] = await readBehind(direct, one, 1);
    proxy.cut();
    expect(await lost).toMatchObject({
      name: 'EngineError',
      code: 'unknown',
    });
    expect(texts(await readBehind(engine, one, 1))).toEqual(['two']);
    await expect(engine.append([entry('two')], one)).rejects.toMatchObject({
      code: 'conflict',
      tail: written!.position,
    });
    expect((await direct.tail()).index).toBe(2);
  });

  test('an unresponsive connection is replaced after one request', async () => {
    const silent = await CuttingProxy.before(etcd.port);
    try {
      const prefix = logs.newPrefix();
      const engine = await logs.open(`127.0.0.1:${silent.port}`, prefix, { requestTimeoutMs: 500 });
      const one = await engine.append([entry('one')], logStart);
      const following = readBehind(engine, one, 1);
      // From here on, data on the old connections is dropped silently; new connections work.
      silent.silence();
      silent.forget();
      await expect(engine.append([entry('two')], one)).rejects.toMatchObject({ name: 'EngineError', code: 'unknown' });
      expect(await engine.tail()).toEqual(one);
      const direct = await logs.open(etcd.endpoint, prefix);
      await direct.append([entry('another')], one);
      expect(texts(await following)).toEqual(['another']);
    } finally {
      await silent.close();
    }
  });

  test('a large append whose parts are written but whose transaction is not has no effect', async () => {
    const prefix = logs.newPrefix();
    const engine = await logs.open(proxy.endpoint, prefix, { requestTimeoutMs: 500 });
    const direct = await logs.open(etcd.endpoint, prefix);
    const large = entries(1, 3 * 1024 * 1024);
    proxy.holdReplies();
    await expect(engine.append(large, logStart)).rejects.toMatchObject({ name: 'EngineError', code: 'unavailable' });
    proxy.cut();
    expect(await direct.tail()).toEqual(logStart);
    const end = await certainAppend(engine, large[0]!, logStart);
    await direct.saveSnapshot(end, chunksOf('state'));
    await direct.trim(1);
    expect(keysUnder(etcd, `${prefix}/part/`)).toEqual([]);
  });

  test('while etcd is down appends are not written and followers wait; afterwards both continue', async () => {
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
    await expect(engine.tail()).rejects.toMatchObject({
      name: 'EngineError',
      code: 'unavailable',
      message: expect.stringMatching(/127\.0\.0\.1/),
    });
    await expect(engine.append([entry('not sent')], one)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'unavailable',
    });
    expect(states.length).toBe(1);
    const [away] = states;
    if (away === undefined || away.reachable) throw new Error('etcd was not told to be away');
    expect(away.trouble).toBe('unreachable');
    expect(away.reason).toMatch(/127\.0\.0\.1/);
    const two = await direct.append([entry('two')], one);
    proxy.comeBack();
    expect(texts((await next).value)).toEqual(['two']);
    await engine.append([entry('three')], two);
    expect(states.at(-1)).toEqual({ reachable: true });
    const { value } = (await follower.next()) as { value: readonly LoggedEntry[] };
    expect(texts(value)).toEqual(['three']);
    await follower.return?.();
  });

  test('a follower continues over repeatedly cut connections, with each entry once', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const reader = await logs.open(proxy.endpoint, prefix);
    const reading = readBehind(reader, logStart, 40 * cuts);
    let at = logStart;
    for (let number = 0; number < 40 * cuts; number++) {
      at = await writer.append([entry(`${number}`)], at);
      if (number % 40 === 20) proxy.cut();
    }
    expect(texts(await reading)).toEqual(Array.from({ length: 40 * cuts }, (_, number) => `${number}`));
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
    expect(await next()).toEqual(['one']);
    const heard = next();
    proxy.holdReplies();
    at = await writer.append([entry('two')], at);
    expect(await heard).toEqual(['two']);
    await writer.append([entry('three')], at);
    expect(await next()).toEqual(['three']);
    await follower.return?.();
  });

  test('a follower continues after a compaction of the revision from which its watch would have resumed', async () => {
    const prefix = logs.newPrefix();
    const writer = await logs.open(etcd.endpoint, prefix);
    const reader = await logs.open(proxy.endpoint, prefix);
    let at = await writer.append([entry('one')], logStart);
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    expect((await follower.next()).done).toBe(false);
    const next = follower.next() as Promise<{ value: readonly LoggedEntry[] }>;
    proxy.goAway();
    at = await writer.append([entry('two')], at);
    await writer.append([entry('three')], at);
    compactNow(etcd);
    proxy.comeBack();
    expect(texts((await next).value)).toEqual(['two', 'three']);
    await follower.return?.();
  });

  test('etcd killed and started again under load: no acknowledged entry is lost or duplicated', async () => {
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
      // One of the next appends is interrupted, each time at another stage.
      for (let turn = 0; turn < kill; turn++) await nextTurn();
      await etcd.kill();
      await etcd.start();
    }
    await writing;
    const read = await reading;
    expect(read.map(({ position }) => position)).toEqual(positions);
    expect(await other.tail()).toEqual(positions.at(-1));
  });

  test('a log that is removed, replaced or truncated is not followed any further', async () => {
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
      followed.push(firstChunk(engine, two).catch((error: unknown) => error));
    }
    proxy.goAway();
    etcd.control('del', '--prefix', `${removed}/`);
    etcd.control('del', '--prefix', `${replaced}/`);
    const impostor = await logs.open(etcd.endpoint, replaced);
    await impostor.append([entry('one'), entry('two')], logStart);
    etcd.control('del', `${shortened}/log/0000000000000002`);
    etcd.control('put', `${shortened}/head`, keep.get(shortened)!);
    proxy.comeBack();
    const diverged = { name: 'EngineError', code: 'diverged' };
    expect(await Promise.all(followed)).toMatchObject([diverged, diverged, diverged]);
  });
});

async function write(engine: LogEngine, count: number, written: Position[]): Promise<void> {
  let at = logStart;
  for (let number = 0; number < count; number++) {
    const bytes = entry(`entry ${number}`);
    const wanted = nextPosition(at, bytes);
    at = await certainAppend(engine, bytes, at);
    expect(at).toEqual(wanted);
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
