import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { entry, readBehind } from '../testing/engine-case.ts';
import { openEtcdEngine } from './etcd-engine.ts';
import { certainAppend } from './testing/certain-append.ts';
import { startEtcdCluster } from './testing/etcd-cluster.ts';
import { EtcdProcess, hasEtcd } from './testing/etcd-process.ts';

/** In every other one the members are killed, in the others they stand still. */
const rounds = { commit: 2, ci: 2, soak: 40 }[inject('effort')];
const entriesPerFault = 100;

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
    const [stopWriting, stopReading] = [new AbortController(), new AbortController()];
    const positions: Position[] = [];
    const writing = write(writer, positions, stopWriting.signal);
    const seen: Position[][] = readers.map(() => []);
    const reading = readers.map((reader, at) => collect(reader, seen[at]!, stopReading.signal));
    for (let round = 0; round < rounds; round++) {
      for (const member of members) {
        if (round % 2 === 0) await member.kill();
        else member.signal('SIGSTOP');
        // Two members of three elect a leader in about a second, and a request to a stopped one takes two to fail.
        await reaches(positions, positions.length + entriesPerFault);
        if (round % 2 === 0) await member.start();
        else member.signal('SIGCONT');
        while (!isHealthy(member)) await delay(50);
      }
    }
    stopWriting.abort();
    await writing;
    for (const read of seen) {
      await reaches(read, positions.length);
      assert.deepEqual(read, positions);
    }
    stopReading.abort();
    await Promise.all(reading);
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

async function collect(engine: LogEngine, positions: Position[], stop: AbortSignal): Promise<void> {
  for await (const chunk of engine.follow(logStart, stop)) positions.push(...chunk.map(({ position }) => position));
}

/** Waits until there are so many, for as long as the test may last. */
async function reaches(positions: readonly Position[], count: number): Promise<void> {
  while (positions.length < count) await delay(10);
}

/** Whether it answers as one of a cluster with a leader. */
function isHealthy(member: EtcdProcess): boolean {
  try {
    member.control('endpoint', 'health');
    return true;
  } catch {
    return false;
  }
}
