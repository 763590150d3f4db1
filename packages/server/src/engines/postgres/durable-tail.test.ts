import { setTimeout as delay } from 'node:timers/promises';
import { CuttingProxy, hasPostgres, PostgresPair } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { entry, texts } from '../testing/engine-case.ts';
import { acknowledgedIn } from './tail-notifier.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines, type OpenedEngine } from './testing/opened-engines.ts';

const waitsForStandby = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
const waitingAppend = `${waitsForStandby} AND application_name ~ '^tenure append'`;
const waitingProofs = `${waitsForStandby} AND application_name ~ '^tenure proof'`;
/** Proofs begin soon, and a caller waiting for one is soon told that there is none yet. */
const timing = { queryTimeoutMs: 600, proofGraceMs: 10, watchIntervalMs: 100, pollIntervalMs: 20 };
const unknownOutcome = { name: 'EngineError', code: 'unknown' };

describe.runIf(hasPostgres())('a commit that PostgreSQL shows before any standby has it', () => {
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

  /** A log of one entry, a leader behind a network that can be cut, and two other servers that follow it. */
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

  /** Loses the standby while an append of entry two is out; resolves when the append waits for it. */
  async function appendInVain(): Promise<{ outcome: Promise<unknown> }> {
    await pair.standby.stop();
    const outcome = leader.engine.append([entry('two')], one).catch((error: unknown) => error);
    while ((await pair.primary.query(waitingAppend)).length === 0);
    return { outcome };
  }

  async function isVisible(index: number): Promise<void> {
    while ((await pair.primary.query(`SELECT FROM ${schema}.head WHERE index = $1`, [index])).length === 0);
  }

  /** Resolves once each follower has tried to prove what it reads, and waits for the standby without success. */
  async function allProve(): Promise<void> {
    let waiting: unknown[] = [];
    while (waiting.length < followed.length) {
      for (const log of followed) expect(log.count, 'a server was given an entry that no standby has').toBe(1);
      waiting = await pair.primary.query(waitingProofs);
    }
  }

  async function allGet(...expected: string[]): Promise<void> {
    for (const log of followed) expect(texts(await log.until(expected.length))).toEqual(expected);
  }

  test('is not delivered when an operator ends the waiting append, before a standby has it', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_terminate_backend(pid) FROM (${waitingAppend}) AS waiting`);
    expect(await outcome).toMatchObject(unknownOutcome);
    await isVisible(2);
    await allProve();
    await pair.standby.start();
    await allGet('one', 'two');
  });

  test('is not delivered after a crash of the primary that shows it, before a standby has it', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.stop('kill');
    expect(await outcome).toMatchObject(unknownOutcome);
    await pair.primary.start();
    await isVisible(2);
    await allProve();
    await pair.standby.start();
    await allGet('one', 'two');
  });

  test('a server that was cut off from the database does not end its append that waits for a standby', async () => {
    const { outcome } = await appendInVain();
    const [waiting] = await pair.primary.query(waitingAppend);
    proxy.cut();
    expect(await outcome).toMatchObject(unknownOutcome);
    // It has looked for the backend of that append, found it waiting, and come to the end of its patience.
    while (!/waits for a standby/.test(await leader.reached('down')));
    expect(await pair.primary.query(waitingAppend)).toEqual([waiting]);
    for (const log of followed) expect(log.count).toBe(1);
    await pair.standby.start();
    await allGet('one', 'two');
    expect((await leader.engine.tail()).index).toBe(2);
  });

  test('many durability queries leave one waiting backend per server', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingAppend}) AS waiting`);
    expect(await outcome).toMatchObject(unknownOutcome);
    await allProve();
    for (let asked = 0; asked < 2; asked += 1) {
      await expect(leader.engine.tail()).rejects.toMatchObject({ code: 'unavailable' });
    }
    while ((await pair.primary.query(waitingProofs)).length < 3) await delay(10);
    expect((await pair.primary.query(waitsForStandby)).length).toBe(3);
    // A proof that is told not to wait for the standby is none.
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingProofs}) AS waiting`);
    await allProve();
    // A proof whose connection breaks is replaced by another, not joined by one.
    await pair.primary.query(`SELECT pg_terminate_backend(pid) FROM (${waitingProofs}) AS waiting`);
    await allProve();
    expect((await pair.primary.query(waitsForStandby)).length).toBeLessThanOrEqual(3);
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
    expect(way.opened - before, `${way.opened - before} proofs for ${count} entries`).toBeLessThan(count / 4);
    for (const each of [...followed, log]) await each.until(1 + count);
    await way.close();
  });

  // The last one, since the primary is gone afterwards.
  test('is not delivered when the wait is cancelled, and never if the primary is lost then', async () => {
    const { outcome } = await appendInVain();
    await pair.primary.query(`SELECT pg_cancel_backend(pid) FROM (${waitingAppend}) AS waiting`);
    expect(await outcome).toMatchObject(unknownOutcome);
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

test('a notification confirms a position only if it names one', () => {
  const hash = '0123456789abcdef0123456789abcdef';
  expect(acknowledgedIn(`17 ${hash}`)).toEqual({ index: 17, hash });
  for (const other of [
    '',
    '17',
    `17 ${hash}0`,
    `-1 ${hash}`,
    `1e3 ${hash}`,
    `9999999999999999 ${hash}`,
    `x17 ${hash}`,
  ]) {
    expect(acknowledgedIn(other), other).toBeUndefined();
  }
});
