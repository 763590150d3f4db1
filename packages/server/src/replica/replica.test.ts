import type { Command, CommandResponse } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { Leadership } from '../election/leadership.ts';
import { noChance } from '../random/testing/no-chance.ts';
import { systemClock } from '../time/system-clock.ts';
import { ProposalError } from './proposal-error.ts';
import { ReplicaPair, type WiredReplica } from './testing/replica-pair.ts';
import { valueOf } from './testing/value-of.ts';

const pairs: ReplicaPair[] = [];

afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair.close();
});

/** The first leads. */
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

/** With which code a proposal fails; 'applied' if it does not. */
function codeOf(outcome: Promise<CommandResponse>): Promise<unknown> {
  return outcome.then(
    () => 'applied',
    (error: unknown) => (error instanceof ProposalError ? error.code : error),
  );
}

/** A replica that leads under a real leadership, whose timers do nothing while a test lasts. */
async function leadingServer(pair: ReplicaPair): Promise<{ leader: WiredReplica; leadership: Leadership }> {
  const holder: { leadership?: Leadership } = {};
  const leader = await pair.join({
    stampMs: () => holder.leadership?.stampMs() ?? 0,
    mayAppend: () => holder.leadership?.mayAppend() ?? false,
    onAppended: () => holder.leadership?.appended(),
    onApplied: (entry, applied) => holder.leadership?.applied(entry, applied),
    onAppendFailed: () => undefined,
    onDeposed: () => holder.leadership?.deposed(),
  });
  await new Promise<void>((resolve, reject) => {
    holder.leadership = new Leadership({
      clock: systemClock,
      port: () => leader.replica,
      metrics: { leaseExpired: () => {}, leaseRenewed: () => {} },
      memberId: 1n,
      leaderId: 'a',
      heartbeatIntervalMs: 60_000,
      electionTimeoutMs: 60_000,
      rightMs: 60_000,
      random: noChance,
      onChange: () => resolve(),
      onFailed: reject,
    });
    void holder.leadership.claimNow();
  });
  return { leader, leadership: holder.leadership as Leadership };
}

/** Writes until the log has been trimmed beyond what `behind` has applied. */
async function writeOnWithout(pair: ReplicaPair, writer: WiredReplica, behind: WiredReplica): Promise<void> {
  for (let round = 0; round < 30; round += 1) await writer.replica.propose(put(`key/${round % 7}`, `${round}`));
  const { position, state } = writer.replica;
  const steps = state.snapshotForEngine();
  await pair.log.saveSnapshot(position, chunksOf(steps));
  await pair.log.trim(position.index);
  for (let round = 0; round < 5; round += 1) await writer.replica.propose(put('behind the snapshot', `${round}`));
  expect(behind.replica.position.index).toBeLessThan(position.index);
}

async function* chunksOf(steps: Iterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let step = steps.next(); step.done !== true; step = steps.next()) yield step.value;
}

describe('a leader that is deposed', () => {
  test('hands what clients asked for to the next, and drops what it wanted of its own accord', async () => {
    const { pair, a, b } = await start();
    const send = a.engine.requests.hold();
    const kept = a.replica.propose(put('from', 'a client'));
    const out = codeOf(a.replica.proposeHere({ kind: 'expireLeases', leases: [] }));
    // The first append is out now; what comes behind it waits for the next.
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = [
      a.replica.proposeHere({ kind: 'renewLeases', ids: [1n] }),
      a.replica.proposeHere({ kind: 'checkpointLeases', leases: [] }),
    ].map(codeOf);
    const claimed = b.replica.claim({ leader: 'b', rightMs: 800 });
    expect(await claimed).toBe('leads');
    send();
    expect(await Promise.all([out, ...waiting])).toEqual(['deposed', 'deposed', 'deposed']);
    await a.replica.whenApplied(b.replica.position.index);
    a.replica.linked({
      epoch: 2,
      propose: ({ command, encoded }) => void b.replica.proposeFor(command, encoded),
      readIndex: () => Promise.reject(new Error('nobody reads here')),
    });
    expect(await kept).toMatchObject({ kind: 'put' });
    expect(valueOf(b.replica.state, 'from')).toBe('a client');
    expect(await codeOf(a.replica.proposeHere({ kind: 'heartbeat' }))).toBe('deposed');
    expect(await pair.logged()).toEqual(['createCluster', 'setTxnLimits', 'claim', 'claim', 'put']);
  });

  test('tells no outcome of what was on its way when it ceased to lead', async () => {
    const { a, b } = await start();
    const hear = a.engine.replies.hold();
    const unclear = codeOf(a.replica.proposeHere({ kind: 'heartbeat' }));
    await b.replica.whenApplied(a.replica.position.index + 1);
    a.replica.stepDown();
    expect(await unclear).toBe('timeout');
    hear();
    await a.replica.whenApplied(b.replica.position.index);
  });
});

describe('a renewal at the leader', () => {
  test('is answered when the state there has every revision that a follower has told of', async () => {
    const pair = new ReplicaPair();
    pairs.push(pair);
    const { leader: a, leadership } = await leadingServer(pair);
    const b = await pair.join();
    pair.link(b, a);
    await a.replica.propose({ kind: 'leaseGrant', id: 1n, ttlMs: 30_000, label: '' });
    expect(leadership.renew(1n)).toBe(30_000);
    const hear = a.engine.replies.hold();
    const written = await b.replica.propose(put('acknowledged', 'by a follower'));
    const revision = 'revision' in written ? written.revision : Infinity;
    expect(a.replica.state.currentRevision).toBeLessThan(revision);
    const told: number[] = [];
    const answered = [1n, 2n].map(async (id) => {
      const ttlMs = await leadership.renew(id);
      told.push(a.replica.state.currentRevision);
      return ttlMs;
    });
    // Whatever can happen by itself has happened then.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([]);
    hear();
    expect(await Promise.all(answered)).toEqual([30_000, 0]);
    expect(told).toEqual([revision, revision]);
    leadership.stop(new Error('the test is over'));
  });
});

describe('a server that gives up its lead while an append is out', () => {
  test('leaves no renewal waiting for that append, which may take for ever', async () => {
    const pair = new ReplicaPair();
    pairs.push(pair);
    const { leader: a, leadership } = await leadingServer(pair);
    await a.replica.propose({ kind: 'leaseGrant', id: 1n, ttlMs: 30_000, label: '' });
    const send = a.engine.requests.hold();
    const lost = codeOf(a.replica.propose({ kind: 'leaseRevoke', id: 2n }));
    await a.engine.requests.arrival();
    const renewals = [1n, 2n].map((id) => Promise.resolve(leadership.renew(id)));
    a.replica.stepDown();
    expect((await Promise.allSettled(renewals)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    send();
    expect(await lost).toBe('applied');
    leadership.stop(new Error('the test is over'));
  });

  test('goes on following while its claim waits for that append', async () => {
    const { pair, a, b } = await start();
    const send = a.engine.requests.hold();
    const own = a.replica.propose(put('own', '1'));
    await a.engine.requests.arrival();
    a.replica.stepDown();
    const claim = a.replica.claim({ leader: 'again', rightMs: 800 });
    await b.replica.claim({ leader: 'b', rightMs: 800 });
    pair.link(a, b);
    await b.replica.propose(put('next', '2'));
    await a.replica.whenApplied(b.replica.position.index);
    expect(valueOf(a.replica.state, 'next')).toBe('2');
    send();
    expect(await claim).toBe('lost');
    await own;
    expect(valueOf(b.replica.state, 'own')).toBe('1');
  });

  test('stops without waiting for that append for long', async () => {
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

  test('does not lead by a claim that comes back when it has stopped', async () => {
    const { a, b } = await start();
    const send = b.engine.requests.hold();
    const claim = b.replica.claim({ leader: 'b', rightMs: 800 });
    await b.engine.requests.arrival();
    await b.replica.stop();
    send();
    expect(await claim).toBe('unclear');
    expect(b.replica.leading).toBe(false);
    expect(a.replica.leading).toBe(true);
  });
});

describe('a server that lags behind the trim', () => {
  test('goes on behind the newest snapshot, as the same state machine', async () => {
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
    // It follows on, and can lead.
    await a.replica.propose(put('one', 'more'));
    await b.replica.whenApplied(a.replica.position.index);
    expect(valueOf(b.replica.state, 'one')).toBe('more');
    a.replica.stepDown();
    await pair.lead(b, a);
    await b.replica.propose(put('led by', 'b'));
    await a.replica.whenApplied(b.replica.position.index);
    expect(valueOf(a.replica.state, 'led by')).toBe('b');
  });

  test('tells no outcome that it has passed over, and keeps what it has handed to nobody', async () => {
    const { pair, a, b } = await start();
    const read = b.engine.reading.hold();
    // What is held back is one chunk of the log, and what lies behind it is trimmed.
    await a.replica.propose(put('held', 'back'));
    const handed = codeOf(b.replica.propose(put('handed', 'once')));
    const linearized = b.replica.linearize();
    await writeOnWithout(pair, a, b);
    b.replica.linked(undefined);
    const waiting = b.replica.propose(put('waiting', 'for a leader'));
    read();
    expect(await handed).toBe('timeout');
    await linearized;
    await b.replica.whenApplied(a.replica.position.index);
    a.replica.stepDown();
    await pair.lead(b, a);
    expect(await waiting).toMatchObject({ kind: 'put' });
    expect(valueOf(b.replica.state, 'handed')).toBe('once');
    const written = await b.replica.propose(put('handed', 'twice'));
    expect(written).toMatchObject({ kind: 'put', revision: b.replica.state.currentRevision });
    expect(b.replica.state.currentRevision).toBe(1 + 1 + 1 + 30 + 5 + 1 + 1);
  });
});
