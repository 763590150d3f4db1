import { setTimeout as delay } from 'node:timers/promises';
import { EtcdProcess, hasEtcd, startEtcdCluster } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { entry, readBehind } from '../testing/engine-case.ts';
import { openEtcdEngine } from './etcd-engine.ts';
import { certainAppend } from './testing/certain-append.ts';

/** Odd rounds kill the members, even rounds stop them (SIGSTOP). */
const rounds = { commit: 2, ci: 2, soak: 40 }[inject('effort')];
const entriesPerFault = 100;

describe.skipIf(!hasEtcd())('the etcd engine on three members', () => {
  let members: readonly EtcdProcess[];

  beforeAll(async () => {
    members = await startEtcdCluster();
  });

  afterAll(() => Promise.all(members.map((member) => member.dispose())));

  /** Each engine has another member as its first endpoint. */
  function open(first: number): Promise<LogEngine> {
    const endpoints = members.map((_, at) => members[(first + at) % members.length]!.endpoint);
    return openEtcdEngine({ endpoints, prefix: '/cluster' });
  }

  test('each member killed and each one stopped in turn: no acknowledged entry is lost or duplicated', async () => {
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
      expect(read).toEqual(positions);
    }
    stopReading.abort();
    await Promise.all(reading);
    const all = await readBehind(readers[0]!, logStart, positions.length);
    expect(all.map(({ position }) => position)).toEqual(positions);
    await Promise.all([writer, ...readers].map((engine) => engine.close()));
  });
});

/**
 * Reads and watches of a member never show an uncommitted entry of its raft log, so no durability proof is needed here,
 * unlike with PostgreSQL.
 */
test.skipIf(!hasEtcd())('an entry that only the leading etcd member has is never delivered', async () => {
  const members = await startEtcdCluster();
  const engines: LogEngine[] = [];
  const open = async (...of: EtcdProcess[]): Promise<LogEngine> => {
    const engine = await openEtcdEngine({ endpoints: of.map(({ endpoint }) => endpoint), prefix: '/lost' });
    engines.push(engine);
    return engine;
  };
  try {
    while (!members.every(isHealthy)) await delay(50);
    const leader = members.find(isLeader);
    if (leader === undefined) throw new Error('no member leads');
    const others = members.filter((member) => member !== leader);
    const writer = await open(leader);
    const onLeader: Position[] = [];
    const onAll: Position[] = [];
    const stop = new AbortController();
    const reading = [
      collect(await open(leader), onLeader, stop.signal),
      collect(await open(...others, leader), onAll, stop.signal),
    ];
    const kept = await writer.append([entry('kept')], logStart);
    for (const read of [onLeader, onAll]) await reaches(read, 1);

    await Promise.all(others.map((member) => member.kill()));
    await expect(writer.append([entry('lost')], kept)).rejects.toMatchObject({ name: 'EngineError', code: 'unknown' });
    expect([onLeader, onAll]).toEqual([[kept], [kept]]);
    await leader.kill();
    await Promise.all(others.map((member) => member.start()));
    while (!others.every(isHealthy)) await delay(50);
    const next = await open(...others);
    const other = await certainAppend(next, entry('other'), kept);
    await leader.start();
    for (const read of [onLeader, onAll]) await reaches(read, 2);
    expect([onLeader, onAll]).toEqual([
      [kept, other],
      [kept, other],
    ]);
    stop.abort();
    await Promise.all(reading);
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
    await Promise.all(members.map((member) => member.dispose()));
  }
});

async function write(engine: LogEngine, positions: Position[], stop: AbortSignal): Promise<void> {
  let at = logStart;
  for (let number = 0; !stop.aborted; number++) {
    const bytes = entry(`entry ${number}`);
    const wanted = nextPosition(at, bytes);
    at = await certainAppend(engine, bytes, at);
    expect(at).toEqual(wanted);
    positions.push(at);
    await delay(5);
  }
}

async function collect(engine: LogEngine, positions: Position[], stop: AbortSignal): Promise<void> {
  for await (const chunk of engine.follow(logStart, stop)) positions.push(...chunk.map(({ position }) => position));
}

/** Waits for this many, as long as the test may last. */
async function reaches(positions: readonly Position[], count: number): Promise<void> {
  while (positions.length < count) await delay(10);
}

/** Whether it answers as a member of a cluster with a leader. */
function isHealthy(member: EtcdProcess): boolean {
  try {
    member.control('endpoint', 'health');
    return true;
  } catch {
    return false;
  }
}

function isLeader(member: EtcdProcess): boolean {
  const [{ Status: status }] = JSON.parse(member.control('endpoint', 'status', '-w', 'json')) as [
    { Status: { header: { member_id: number }; leader: number } },
  ];
  return status.header.member_id === status.leader;
}
