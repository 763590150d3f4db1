import type { Command } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { ReplicaPair, type WiredReplica } from './testing/replica-pair.ts';
import { valueOf } from './testing/value-of.ts';

const pairs: ReplicaPair[] = [];
afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair.close();
});

function put(key: string): Command {
  return { kind: 'put', put: { key, value: 'v', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

async function start(readsByLease: boolean): Promise<{
  pair: ReplicaPair;
  leader: WiredReplica;
  follower: WiredReplica;
}> {
  const pair = new ReplicaPair();
  pairs.push(pair);
  const leader = await pair.join({ readsByLease });
  const follower = await pair.join();
  await pair.lead(leader, follower);
  await leader.replica.propose(put('first'));
  return { pair, leader, follower };
}

const has = ({ replica }: WiredReplica, key: string): boolean => valueOf(replica.state, key) !== undefined;

/** Whether the promise is settled once the event loop has nothing left to run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.catch(() => undefined).finally(() => (settled = true));
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

describe('a linearizable read on the leader', () => {
  test('by the log waits for an append that began after the read', async () => {
    const { replica } = (await start(false)).leader;
    const { index } = replica.position;
    await replica.linearize();
    expect(replica.position.index).toBe(index + 1);
    await replica.confirm();
    expect(replica.position.index).toBe(index + 2);
  });

  test('by the leader lease asks no other server', async () => {
    const { replica } = (await start(true)).leader;
    const { index } = replica.position;
    expect(replica.linearize()).toBeUndefined();
    await replica.confirm();
    expect(replica.position.index).toBe(index);
  });

  test('by the leader lease waits for the append in flight: another server may have acknowledged it', async () => {
    const { leader, follower } = await start(true);
    const hear = leader.engine.replies.hold();
    const written = leader.replica.propose(put('second'));
    await follower.replica.whenApplied(leader.replica.position.index + 1);
    expect(has(follower, 'second')).toBe(true);
    expect(has(leader, 'second')).toBe(false);
    const read = leader.replica.linearize() ?? Promise.resolve();
    const asked = leader.replica.confirm();
    expect(await isSettled(read)).toBe(false);
    expect(await isSettled(asked)).toBe(false);
    hear();
    await Promise.all([read, asked]);
    expect(has(leader, 'second')).toBe(true);
    await written;
  });

  test('by the leader lease waits for the next leader when this one is deposed during an append', async () => {
    const { pair, leader, follower } = await start(true);
    const hear = leader.engine.replies.hold();
    const written = leader.replica.propose(put('second'));
    await follower.replica.whenApplied(leader.replica.position.index + 1);
    const read = leader.replica.linearize() ?? Promise.resolve();
    leader.replica.stepDown(leader.replica.state.epoch);
    expect(await isSettled(read)).toBe(false);
    expect(await follower.replica.claim({ leader: 'another', leaderLeaseMs: 800 })).toBe('leads');
    await follower.replica.propose(put('third'));
    await leader.replica.whenApplied(follower.replica.position.index);
    expect(await isSettled(read)).toBe(false);
    pair.link(leader, follower);
    await read;
    expect(has(leader, 'third')).toBe(true);
    await written;
    hear();
  });
});

describe('a linearizable read on a follower', () => {
  test('waits until the read index of the leader is applied', async () => {
    const { leader, follower } = await start(false);
    const see = follower.engine.reading.hold();
    await leader.replica.propose(put('second'));
    const read = follower.replica.linearize() ?? Promise.resolve();
    const isEarly = await isSettled(read);
    // On success or failure, the pair can be closed only after every held gate is open.
    see();
    await read;
    expect(isEarly).toBe(false);
    expect(has(follower, 'second')).toBe(true);
  });
});
