import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CuttingProxy, hasPostgres, PostgresPair } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, beforeEach, describe, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { entry, texts } from '../testing/engine-case.ts';
import { acknowledgedIn } from './tail-notifier.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines, type OpenedEngine } from './testing/opened-engines.ts';

const waitsForStandby = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
const waitingAppend = `${waitsForStandby} AND application_name ~ '^tenure append'`;
const waitingProofs = `${waitsForStandby} AND application_name ~ '^tenure proof'`;
/** Proofs begin soon, and whoever waits for one is told before long that there is none yet. */
const timing = { queryTimeoutMs: 600, proofGraceMs: 10, watchIntervalMs: 100, pollIntervalMs: 20 };

describe.runIf(hasPostgres())('what PostgreSQL shows and no standby has', () => {
  const opened = new OpenedEngines();
  let pair: PostgresPair;
  let schema = '';
  let logs = 0;
  let proxy: CuttingProxy;
  let leader: OpenedEngine;
  let followed: FollowedLog[];
  let one: Position;

  beforeAll(async () => {
    pair = await PostgresPair.create();
    await pair.makeSynchronous();
    proxy = await CuttingProxy.before(pair.primary.port);
  });
  afterAll(async () => {
    await proxy?.close();
    await Promise.all([pair?.primary.dispose(), pair?.standby.dispose()]);
  });

  /** A log of one entry, a leader behind a network that can be cut, and two other servers that follow. */
  beforeEach(async () => {
    schema = `log_${(logs += 1)}`;
    leader = await opened.open({ url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`, schema, timing });
    const url = pair.url;
    const others = [await opened.open({ url, schema, timing }), await opened.open({ url, schema, timing })];
    followed = others.map(({ engine }) => new FollowedLog(engine));
    one = await leader.engine.append([entry('one')], logStart);
    for (const log of followed) await log.reached(1);
  });
  afterEach(() => opened.closeAll());

  /** Loses the standby while an append of entry two is out; resolves when that waits in vain. */
  async function appendInVain(): Promise<{ outcome: Promise<void> }> {
    await pair.standby.stop();
    const outcome = assert.rejects(leader.engine.append([entry('two')], one), { name: 'EngineError', code: 'unknown' });
    while ((await pair.primary.query(waitingAppend)).length === 0);
    return { outcome };
  }

  async function isVisible(index: number): Promise<void> {
    while ((await pair.primary.query(`SELECT FROM ${schema}.head WHERE index = $1`, [index])).length === 0);
  }

  /** Resolves once each follower has tried to prove what it sees, and waits for the standby in vain. */
  async function allProve(): Promise<void> {
    let waiting: unknown[] = [];
    while (waiting.length < followed.length) {
      for (const log of followed) assert.equal(log.count, 1, 'a server was given an entry that no standby has');
      waiting = await pair.primary.query(waitingProofs);
    }
  }

  async function allGet(...expected: string[]): Promise<void> {
    for (const log of followed) assert.deepEqual(texts(await log.until(expected.length)), expected);
  }

  test('is given to nobody when an operator ends the append that waits, before a standby has it', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_terminate_backend(pid) FROM (${waitingAppend}) AS waiting`);
    await outcome;
    await isVisible(2);
    await allProve();
    await pair.standby.start();
    await allGet('one', 'two');
  });

  test('is given to nobody after the primary has crashed and shows it, before a standby has it', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.stop('kill');
    await outcome;
    await pair.primary.start();
    await isVisible(2);
    await allProve();
    await pair.standby.start();
    await allGet('one', 'two');
  });

  test('a server whose way to the database was cut does not end its append that waits for a standby', async () => {
    const { outcome } = await appendInVain();
    const [waiting] = await pair.primary.query(waitingAppend);
    proxy.cut();
    await outcome;
    // It has looked for the backend of that append, found it waiting, and come to the end of its patience.
    while (!/waits for a standby/.test(await leader.reached('down')));
    assert.deepEqual(await pair.primary.query(waitingAppend), [waiting]);
    for (const log of followed) assert.equal(log.count, 1);
    await pair.standby.start();
    await allGet('one', 'two');
    assert.equal((await leader.engine.tail()).index, 2);
  });

  test('many questions whether it is durable leave one backend of each server waiting', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingAppend}) AS waiting`);
    await outcome;
    await allProve();
    for (let asked = 0; asked < 2; asked += 1) {
      await assert.rejects(leader.engine.tail(), { code: 'unavailable' });
    }
    while ((await pair.primary.query(waitingProofs)).length < 3) await delay(10);
    assert.equal((await pair.primary.query(waitsForStandby)).length, 3);
    // A proof that is told not to wait for the standby is none.
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingProofs}) AS waiting`);
    await allProve();
    // A proof whose connection breaks is followed by one in its place, not beside it.
    await pair.primary.query(`SELECT pg_terminate_backend(pid) FROM (${waitingProofs}) AS waiting`);
    await allProve();
    assert.ok((await pair.primary.query(waitsForStandby)).length <= 3);
    await pair.standby.start();
    await allGet('one', 'two');
  });

  test('an entry whose append was acknowledged needs no proof on any server', async () => {
    const way = await CuttingProxy.before(pair.primary.port);
    const url = `postgres://postgres@127.0.0.1:${way.port}/postgres`;
    const { engine } = await opened.open({ url, schema });
    const log = new FollowedLog(engine);
    await log.reached(1);
    const before = way.opened;
    let tail = one;
    const count = 100;
    for (let at = 1; at <= count; at += 1) {
      tail = await leader.engine.append([entry(`more ${at}`)], tail);
      await log.reached(1 + at);
    }
    // Each proof is a connection. A word that comes late on a busy machine may cost one.
    assert.ok(way.opened - before < count / 4, `${way.opened - before} proofs for ${count} entries`);
    for (const each of [...followed, log]) await each.until(1 + count);
    await way.close();
  });

  // The last one, since the primary is gone afterwards.
  test('is given to nobody when the wait is cancelled, and never if the primary is lost then', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingAppend}) AS waiting`);
    await outcome;
    await isVisible(2);
    await allProve();
    await pair.primary.stop();
    await pair.standby.start();
    await pair.standby.query(`ALTER SYSTEM SET synchronous_standby_names = ''`);
    await pair.standby.promote();
    const next = await opened.open({ url: pair.url, schema, timing });
    await next.engine.append([entry('other')], one);
    await allGet('one', 'other');
  });
});

test('a notification vouches for a position only if it names one', () => {
  const hash = '0123456789abcdef0123456789abcdef';
  assert.deepEqual(acknowledgedIn(`17 ${hash}`), { index: 17, hash });
  for (const other of [
    '',
    '17',
    `17 ${hash}0`,
    `-1 ${hash}`,
    `1e3 ${hash}`,
    `9999999999999999 ${hash}`,
    `x17 ${hash}`,
  ]) {
    assert.equal(acknowledgedIn(other), undefined, other);
  }
});
