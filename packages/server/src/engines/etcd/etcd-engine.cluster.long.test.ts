import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { entry, readBehind } from '../testing/engine-case.ts';
import { openEtcdEngine } from './etcd-engine.ts';
import { certainAppend } from './testing/certain-append.ts';
import { startEtcdCluster } from './testing/etcd-cluster.ts';
import { EtcdProcess, hasEtcd } from './testing/etcd-process.ts';

const rounds = 2;

describe.skipIf(!hasEtcd())('the etcd engine on three members', () => {
  let members: readonly EtcdProcess[];

  beforeAll(async () => {
    members = await startEtcdCluster();
  });

  afterAll(() => Promise.all(members.map((member) => member.dispose())));

  /** Each has another member as its first. */
  function open(first: number): Promise<LogEngine> {
    const endpoints = members.map((_, at) => members[(first + at) % members.length]!.endpoint);
    return openEtcdEngine({ endpoints, prefix: '/cluster' });
  }

  test('each member killed and each one stopped in turn: nothing acknowledged is lost or there twice', async () => {
    const writer = await open(0);
    const readers = [await open(1), await open(2)];
    const stop = new AbortController();
    const positions: Position[] = [];
    const writing = write(writer, positions, stop.signal);
    const seen = readers.map((reader) => collect(reader, stop.signal));
    for (let round = 0; round < rounds; round++) {
      for (const member of members) {
        const before = positions.length;
        if (round % 2 === 0) await member.kill();
        else member.signal('SIGSTOP');
        // Two members of three elect a leader in about a second, and a request to a stopped one takes two to fail.
        await delay(5000);
        assert.ok(positions.length > before, 'nothing was appended with two members of three');
        if (round % 2 === 0) await member.start();
        else member.signal('SIGCONT');
        await delay(1000);
      }
    }
    stop.abort();
    await writing;
    for (const reading of seen) {
      const read = await reading;
      assert.deepEqual(read, positions.slice(0, read.length));
      assert.ok(read.length > positions.length - 100, `${read.length} of ${positions.length} were followed`);
    }
    const all = await readBehind(readers[0]!, logStart, positions.length);
    assert.deepEqual(
      all.map(({ position }) => position),
      positions,
    );
    await Promise.all([writer, ...readers].map((engine) => engine.close()));
  });
});

async function write(engine: LogEngine, positions: Position[], stop: AbortSignal): Promise<void> {
  let at = logStart;
  for (let number = 0; !stop.aborted; number++) {
    const bytes = entry(`entry ${number}`);
    const wanted = nextPosition(at, bytes);
    at = await certainAppend(engine, bytes, at);
    assert.deepEqual(at, wanted);
    positions.push(at);
    await delay(5);
  }
}

async function collect(engine: LogEngine, stop: AbortSignal): Promise<Position[]> {
  const positions: Position[] = [];
  for await (const chunk of engine.follow(logStart, stop)) positions.push(...chunk.map(({ position }) => position));
  return positions;
}
