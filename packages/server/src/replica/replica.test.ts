import type { Command, CommandResponse } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { ProposalError } from './proposal-error.ts';
import { leadingReplica } from './testing/leading-replica.ts';
import { ReplicaPair, type WiredReplica } from './testing/replica-pair.ts';
import { valueOf } from './testing/value-of.ts';

const pairs: ReplicaPair[] = [];

afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair.close();
});

/** The first one leads. */
async function start(): Promise<{ pair: ReplicaPair; a: WiredReplica; b: WiredReplica }> {
  const pair = new ReplicaPair();
  pairs.push(pair);
  const [a, b] = [await pair.join(), await pair.join()];
  await pair.lead(a, b);
  return { pair, a, b };
}

function put(key: string, value: string): Command {
  return { kind: 'put', put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** The code of the error that rejects a proposal; 'applied' if it succeeds. */
function codeOf(outcome: Promise<CommandResponse>): Promise<unknown> {
  return outcome.then(
    () => 'applied',
    (error: unknown) => (error instanceof ProposalError ? error.code : error),
  );
}

/** Writes until the log has been trimmed beyond the position that `behind` has applied. */
async function writeOnWithout(pair: ReplicaPair, writer: WiredReplica, behind: WiredReplica): Promise<void> {
  for (let round = 0; round < 30; round += 1) await writer.replica.propose(put(`key/${round % 7}`, `${round}`));
  const { position, state } = writer.replica;
  const steps = state.snapshotForEngine();
  await pair.log.saveSnapshot(position, chunksOf(steps));
  await pair.log.trim(position.index);
  for (let round = 0; round < 5; round += 1) await writer.replica.propose(put('after the snapshot', `${round}`));
  expect(behind.replica.position.index).toBeLessThan(position.index);
}

async function* chunksOf(steps: Iterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let step = steps.next(); step.done !== true; step = steps.next()) yield step.value;
}

test('a new leader judges the commands itself that it had proposed to its predecessor', async () => {
  const pair = new ReplicaPair();
  pairs.push(pair);
  const tooEarly = new Error('a server of an earlier version does not know it');
  const peerUrls = ['http://a:1'];
  const refusal = (command: Command): Error | undefined => (command.kind === 'registerMember' ? tooEarly : undefined);
  const [a, b] = [await pair.join(), await pair.join({ refusal })];
  await pair.lead(a, b);
  b.replica.linked(undefined);
  const outcomes = [
    codeOf(b.replica.propose({ kind: 'registerMember', id: 2n, name: 'b', clientUrls: [], peerUrls })),
    codeOf(b.replica.propose(put('a', '1'))),
  ];
  expect(await b.replica.claim({ leader: 'b', leaderLeaseMs: 800 })).toBe('leads');
  expect(await Promise.all(outcomes)).toEqual([tooEarly, 'applied']);
  expect(b.replica.state.members).toEqual([]);
});

describe('a deposed leader', () => {
  test('forwards the requests of clients to the next leader, and drops its own commands', async () => {
    const { pair, a, b } = await start();
    const send = a.engine.requests.hold();
    const kept = a.replica.propose(put('from', 'a client'));
    const out = codeOf(a.replica.proposeHere({ kind: 'expireLeases', leases: [] }));
    // The first append is in flight now; the rest waits for the next.
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = [
      a.replica.proposeHere({ kind: 'renewLeases', ids: [1n] }),
      a.replica.proposeHere({ kind: 'checkpointLeases', leases: [] }),
    ].map(codeOf);
    const claimed = b.replica.claim({ leader: 'b', leaderLeaseMs: 800 });
    expect(await claimed).toBe('leads');
    send();
    expect(await Promise.all([out, ...waiting])).toEqual(['deposed', 'deposed', 'deposed']);
    await a.replica.whenApplied(b.replica.position.index);
    a.replica.linked({
      epoch: 2,
      propose: ({ command, encoded }) => void b.replica.proposeFor(command, encoded),
      readIndex: () => Promise.reject(new Error('this test reads nothing')),
    });
    expect(await kept).toMatchObject({ kind: 'put' });
    expect(valueOf(b.replica.state, 'from')).toBe('a client');
    expect(await codeOf(a.replica.proposeHere({ kind: 'heartbeat' }))).toBe('deposed');
    expect(await pair.logged()).toEqual(['createCluster', 'setTxnLimits', 'claim', 'claim', 'put']);
  });

  test('reports no outcome for a command in flight when it stopped leading', async () => {
    const { a, b } = await start();
    const hear = a.engine.replies.hold();
    const unclear = codeOf(a.replica.proposeHere({ kind: 'heartbeat' }));
    await b.replica.whenApplied(a.replica.position.index + 1);
    a.replica.stepDown(a.replica.state.epoch);
    expect(await unclear).toBe('timeout');
    hear();
    await a.replica.whenApplied(b.replica.position.index);
  });
});

describe('a renewal at the leader', () => {
  test('is answered when the state of the leader has every revision that a follower has reported', async () => {
    const pair = new ReplicaPair();
    pairs.push(pair);
    const { leader: a, driver } = await leadingReplica(pair);
    const b = await pair.join();
    pair.link(b, a);
    await a.replica.propose({ kind: 'leaseGrant', id: 1n, ttlMs: 30_000, label: '' });
    expect(driver.renew(1n, undefined)).toBe(30_000);
    const hear = a.engine.replies.hold();
    const written = await b.replica.propose(put('acknowledged', 'by a follower'));
    const revision = 'revision' in written ? written.revision : Infinity;
    expect(a.replica.state.currentRevision).toBeLessThan(revision);
    const told: number[] = [];
    const answered = [1n, 2n].map(async (id) => {
      const ttlMs = await driver.renew(id, undefined);
      told.push(a.replica.state.currentRevision);
      return ttlMs;
    });
    // The event loop has nothing left to run here.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([]);
    hear();
    expect(await Promise.all(answered)).toEqual([30_000, 0]);
    expect(told).toEqual([revision, revision]);
    driver.stop(new Error('the test is over'));
  });
});

describe('a server that steps down while an append is in flight', () => {
  test('leaves no renewal waiting for that append, which may never return', async () => {
    const pair = new ReplicaPair();
    pairs.push(pair);
    const { leader: a, driver } = await leadingReplica(pair);
    await a.replica.propose({ kind: 'leaseGrant', id: 1n, ttlMs: 30_000, label: '' });
    const send = a.engine.requests.hold();
    const lost = codeOf(a.replica.propose({ kind: 'leaseRevoke', id: 2n }));
    await a.engine.requests.arrival();
    const renewals = [1n, 2n].map((id) => Promise.resolve(driver.renew(id, undefined)));
    a.replica.stepDown(a.replica.state.epoch);
    expect((await Promise.allSettled(renewals)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    send();
    expect(await lost).toBe('applied');
    driver.stop(new Error('the test is over'));
  });

  test('continues to follow while its claim waits for that append', async () => {
    const { pair, a, b } = await start();
    const send = a.engine.requests.hold();
    const own = a.replica.propose(put('own', '1'));
    await a.engine.requests.arrival();
    a.replica.stepDown(a.replica.state.epoch);
    const claim = a.replica.claim({ leader: 'again', leaderLeaseMs: 800 });
    await b.replica.claim({ leader: 'b', leaderLeaseMs: 800 });
    pair.link(a, b);
    await b.replica.propose(put('next', '2'));
    await a.replica.whenApplied(b.replica.position.index);
    expect(valueOf(a.replica.state, 'next')).toBe('2');
    send();
    expect(await claim).toBe('lost');
    await own;
    expect(valueOf(b.replica.state, 'own')).toBe('1');
  });

  test('stops without a long wait for that append', async () => {
    const pair = new ReplicaPair();
    pairs.push(pair);
    const [a, b] = [await pair.join({ stopGraceMs: 50 }), await pair.join()];
    await pair.lead(a, b);
    const send = a.engine.requests.hold();
    const lost = codeOf(a.replica.propose(put('own', '1')));
    await a.engine.requests.arrival();
    await a.replica.stop();
    expect(await lost).toBe('stopped');
    send();
  });

  test('does not lead by a claim that returns after it has stopped', async () => {
    const { a, b } = await start();
    const send = b.engine.requests.hold();
    const claim = b.replica.claim({ leader: 'b', leaderLeaseMs: 800 });
    await b.engine.requests.arrival();
    await b.replica.stop();
    send();
    expect(await claim).toBe('unclear');
    expect(b.replica.leading).toBe(false);
    expect(a.replica.leading).toBe(true);
  });
});

describe('a server that lags behind the trimmed part of the log', () => {
  test('continues from the newest snapshot, with the same state machine object', async () => {
    const { pair, a, b } = await start();
    const { state } = b.replica;
    const { history } = state;
    const read = b.engine.reading.hold();
    await writeOnWithout(pair, a, b);
    read();
    await b.replica.whenApplied(a.replica.position.index);
    expect(b.loaded).toHaveLength(1);
    expect(b.replica.state).toBe(state);
    expect(state.stateHash()).toBe(a.replica.state.stateHash());
    expect(history.currentRevision).toBe(a.replica.state.currentRevision);
    expect(history.eventsAt(3)).toMatchObject([{ kv: { key: 'key/1', value: '1' } }]);
    // It continues to follow, and can lead.
    await a.replica.propose(put('one', 'more'));
    await b.replica.whenApplied(a.replica.position.index);
    expect(valueOf(b.replica.state, 'one')).toBe('more');
    a.replica.stepDown(a.replica.state.epoch);
    await pair.lead(b, a);
    await b.replica.propose(put('led by', 'b'));
    await a.replica.whenApplied(b.replica.position.index);
    expect(valueOf(a.replica.state, 'led by')).toBe('b');
  });

  test('reports no outcome that it skipped, and keeps proposals not yet sent to a leader', async () => {
    const { pair, a, b } = await start();
    const read = b.engine.reading.hold();
    // The gate holds back one chunk of the log, and the entries after it are trimmed.
    await a.replica.propose(put('held', 'back'));
    const handed = codeOf(b.replica.propose(put('handed', 'once')));
    const linearized = b.replica.linearize();
    await writeOnWithout(pair, a, b);
    b.replica.linked(undefined);
    const waiting = b.replica.propose(put('waiting', 'for a leader'));
    read();
    expect(await handed).toBe('skipped');
    await linearized;
    await b.replica.whenApplied(a.replica.position.index);
    a.replica.stepDown(a.replica.state.epoch);
    await pair.lead(b, a);
    expect(await waiting).toMatchObject({ kind: 'put' });
    expect(valueOf(b.replica.state, 'handed')).toBe('once');
    const written = await b.replica.propose(put('handed', 'twice'));
    expect(written).toMatchObject({ kind: 'put', revision: b.replica.state.currentRevision });
    expect(b.replica.state.currentRevision).toBe(1 + 1 + 1 + 30 + 5 + 1 + 1);
  });
});
