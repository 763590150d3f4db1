import type { Command, CommandResponse } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { decodeCommand } from './command-codec.ts';
import { recover } from './recovery.ts';
import { Replica } from './replica.ts';
import { grantingAuthority } from './testing/granting-authority.ts';
import { systemClock } from '../time/system-clock.ts';

const open: Replica[] = [];
/** Each run begins with its claim. */
const claimIndex = 1;

afterEach(async () => {
  for (const replica of open.splice(0)) await replica.stop();
});

async function start(
  engine: LogEngine,
  options: {
    entries?: number;
    onSnapshotPutOff?: (error: Error) => void;
    onFailed?: (error: Error) => void;
  } = {},
): Promise<Replica> {
  const recovered = await recover(engine, decodeCommand, systemClock);
  const replica = new Replica(recovered, {
    engine,
    snapshots: { entries: options.entries ?? 1_000_000, bytes: Number.MAX_SAFE_INTEGER },
    metrics: { appended: () => {}, applied: () => {}, snapshotSaved: () => {} },
    run: 1,
    requestTimeoutMs: 20_000,
    clock: systemClock,
    authority: grantingAuthority,
    readsByLease: false,
    problem: () => undefined,
    slowestFollower: () => Infinity,
    onFact: (fact) => {
      const { onSnapshotPutOff, onFailed } = options;
      if (fact.kind === 'snapshotPutOff') (onSnapshotPutOff ?? failTest)(fact.reason);
      if (fact.kind === 'failed') (onFailed ?? failTest)(fact.error);
    },
  });
  open.push(replica);
  replica.start();
  const outcome = await replica.claim({ leader: `run-${recovered.state.epoch + 1}`, leaderLeaseMs: 800 });
  expect(outcome).toBe('leads');
  return replica;
}

const failTest = (error: Error): void => expect.fail(error.message);

function put(key: string, value: string): Command {
  return {
    kind: 'put',
    put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  };
}

/** Rejects every append from the given one on. */
function failingAfter(engine: LogEngine, appends: number): LogEngine {
  let done = 0;
  const append = engine.append.bind(engine);
  engine.append = (batch, after) => {
    done += 1;
    return done > appends ? Promise.reject(new EngineError('fatal', 'the disk is gone')) : append(batch, after);
  };
  return engine;
}

describe('a replica on an unshared log', () => {
  test('answers proposals in order, and recovers the same state after a restart', async () => {
    const engine = memoryEngine();
    const replica = await start(engine);
    const responses = await Promise.all(
      Array.from({ length: 3_000 }, (_, at) => replica.propose(put(`k${at % 100}`, `${at}`))),
    );
    const revisions = responses.map((response: CommandResponse) => (response.kind === 'put' ? response.revision : -1));
    expect(revisions).toEqual(Array.from({ length: 3_000 }, (_, at) => at + 2));
    const again = await recover(engine, decodeCommand, systemClock);
    expect(again.position).toEqual(replica.position);
    expect(again.state.stateHash()).toBe(replica.state.stateHash());
  });

  test('batches the commands of one turn of the event loop into one entry', async () => {
    const replica = await start(memoryEngine());
    await Promise.all(Array.from({ length: 500 }, (_, at) => replica.propose(put(`k${at}`, ''))));
    expect(replica.position.index).toBe(claimIndex + 1);
  });

  test('limits the operations of one entry, so that one apply stays short', async () => {
    const replica = await start(memoryEngine());
    const value = { value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    const success = Array.from(
      { length: 128 },
      (_, at) => ({ kind: 'put', put: { key: `k${at}`, ...value } }) as const,
    );
    const txn: Command = { kind: 'txn', txn: { compare: [], success, failure: [] } };
    await Promise.all(Array.from({ length: 256 }, () => replica.propose(txn)));
    expect(replica.position.index).toBe(claimIndex + 4);
  });

  test('gives checkpoints of leases entries of their own, in order', async () => {
    const replica = await start(memoryEngine());
    const checkpoints: Command = { kind: 'checkpointLeases', leases: [] };
    await Promise.all(
      [put('a', ''), put('b', ''), checkpoints, put('c', ''), checkpoints, checkpoints].map((each) =>
        replica.propose(each),
      ),
    );
    expect(replica.position.index).toBe(claimIndex + 5);
  });

  test('takes snapshots under load, trims the log behind them, and restarts from them', async () => {
    const engine = memoryEngine();
    const replica = await start(engine, { entries: 20 });
    for (let at = 0; at < 200; at += 1) await replica.propose(put(`k${at % 37}`, `${at}`));
    await replica.stop();
    const snapshot = await engine.loadSnapshot();
    expect(snapshot?.position.index).toBeGreaterThan(100);
    const again = await recover(engine, decodeCommand, systemClock);
    expect(again.state.stateHash()).toBe(replica.state.stateHash());
    expect(again.position).toEqual(replica.position);
  });

  test('continues after a snapshot failed for lack of space, and retries', async () => {
    const engine = memoryEngine();
    const save = engine.saveSnapshot.bind(engine);
    let tries = 0;
    engine.saveSnapshot = (position, chunks) => {
      tries += 1;
      return tries === 1 ? Promise.reject(new EngineError('full', 'no room')) : save(position, chunks);
    };
    const putOff: string[] = [];
    const replica = await start(engine, { entries: 20, onSnapshotPutOff: ({ message }) => putOff.push(message) });
    for (let at = 0; at < 100; at += 1) await replica.propose(put(`k${at}`, ''));
    await replica.stop();
    expect(putOff).toEqual(['no room']);
    expect((await engine.loadSnapshot())?.position.index).toBeGreaterThanOrEqual(40);
  });

  test('rejects waiting and new proposals when the log fails, and reports the failure once', async () => {
    const failures: Error[] = [];
    const engine = failingAfter(memoryEngine(), claimIndex + 1);
    const replica = await start(engine, { onFailed: (error) => failures.push(error) });
    await replica.propose(put('a', '1'));
    const lost = await Promise.allSettled([replica.propose(put('b', '1')), replica.propose(put('c', '1'))]);
    expect(lost.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(replica.propose(put('d', '1'))).rejects.toMatchObject({ code: 'stopped' });
    expect(failures.map(({ message }) => message)).toEqual(['the disk is gone']);
    expect(replica.state.currentRevision).toBe(2);
  });

  test('refuses proposals beyond the limit, and answers the accepted ones', async () => {
    const replica = await start(memoryEngine());
    const outcomes = await Promise.allSettled(
      Array.from({ length: 66_000 }, (_, at) => replica.propose(put(`k${at % 10}`, ''))),
    );
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBe(66_000 - 65_536);
    expect(replica.state.currentRevision).toBe(65_537);
  });
});
