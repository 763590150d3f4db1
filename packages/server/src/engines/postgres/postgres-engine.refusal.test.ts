import assert from 'node:assert/strict';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entry, firstChunk } from '../testing/engine-case.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

describe.runIf(hasPostgres())('opening a log in PostgreSQL', () => {
  let cluster: PostgresCluster;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
    await cluster.query(`CREATE ROLE guest LOGIN`);
  });
  afterEach(() => opened.closeAll());
  afterAll(() => cluster?.dispose());

  const refused = (options: { url: string; schema?: string }, code: string, message: RegExp): Promise<void> =>
    assert.rejects(opened.open(options), { name: 'EngineError', code, message });

  test('a schema of a newer version is refused at the opening', async () => {
    const options = { url: cluster.url(), schema: 'newer' };
    await opened.open(options);
    await cluster.query('UPDATE newer.meta SET version = 2');
    await refused(options, 'unusable', /newer .*version 2.*version 1.*newer Tenure.*--engine-schema/);
  });

  for (const [how, schema, cut] of [
    ['while the connections stand', 'taken_over', false],
    ['while they are down', 'taken_down', true],
  ] as const) {
    const timing = { schemaCheckIntervalMs: cut ? 3_600_000 : 50 };
    test(`a schema that becomes newer ends an engine that has it open, ${how}`, async () => {
      const { engine, reached } = await opened.open({ url: cluster.url(), schema, timing });
      const ends = { code: 'unusable', message: /version 2.*newer Tenure/ };
      const following = assert.rejects(firstChunk(engine, logStart), ends);
      await cluster.query(`UPDATE ${schema}.meta SET version = 2`);
      const ended = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^tenure '`;
      if (cut) await cluster.query(ended);
      await following;
      for (;;) if (/version 2/.test(await reached('down'))) break;
      // It has ended for good: its server stops, and whoever starts it again learns the same at the opening.
      await cluster.query(`UPDATE ${schema}.meta SET version = 1`);
      await assert.rejects(engine.append([entry('x')], logStart), ends);
      await assert.rejects(engine.tail(), ends);
      const { engine: next } = await opened.open({ url: cluster.url(), schema });
      await next.append([entry('x')], logStart);
    });
  }

  test('a schema that holds something else is refused, and nothing in it is touched', async () => {
    await cluster.query('CREATE SCHEMA theirs');
    await cluster.query('CREATE TABLE theirs.orders AS SELECT 1 AS number');
    await refused({ url: cluster.url(), schema: 'theirs' }, 'unusable', /theirs holds orders .*--engine-schema/);
    assert.equal((await cluster.query(`SELECT FROM pg_tables WHERE schemaname = 'theirs'`)).length, 1);
  });

  test('a name that no schema can have is refused', async () => {
    for (const schema of ['', 'Upper', 'a"b', 'pg_mine', '1st', 'x'.repeat(49)]) {
      await refused({ url: cluster.url(), schema }, 'unusable', /cannot name the schema/);
    }
  });

  test('a user who may not make the schema is told what the owner has to run, and that it helps', async () => {
    const url = cluster.url('postgres', 'guest');
    const command = /run as the owner of the database: (CREATE SCHEMA .*); in "postgres"/;
    const error = (await opened.open({ url, schema: 'guests' }).catch((reason: unknown) => reason)) as Error;
    const statements = command.exec(error.message)?.[1];
    assert.ok(statements !== undefined, error.message);
    await cluster.query(statements);
    const { engine } = await opened.open({ url, schema: 'guests' });
    await engine.append([entry('x')], logStart);
  });

  test('a user who may not read a log is refused with the reason', async () => {
    await opened.open({ url: cluster.url(), schema: 'private' });
    await refused(
      { url: cluster.url('postgres', 'guest'), schema: 'private' },
      'unusable',
      /permission denied.*GRANT USAGE ON SCHEMA private TO "guest"; GRANT SELECT, .* TO "guest";/,
    );
  });

  test('a database that is not there, and a user whom nobody knows', async () => {
    await refused({ url: cluster.url('elsewhere') }, 'unusable', /127.0.0.1:\d+: .*elsewhere.*createdb/);
    await refused({ url: cluster.url('postgres', 'nobody') }, 'unusable', /127.0.0.1:\d+: .*nobody/);
  });

  test('hosts where nothing listens are each named', async () => {
    const url = 'postgres://postgres@127.0.0.1:1,localhost:2/postgres';
    await refused({ url }, 'unavailable', /127.0.0.1:1: .*ECONNREFUSED.*localhost:2: .*ECONNREFUSED/);
  });

  test('what is dangerous in the settings of the database is said', async () => {
    const { notices } = await opened.open({ url: cluster.url(), schema: 'warned' });
    assert.equal(notices.length, 2, notices.join('\n'));
    assert.match(notices.join('\n'), /fsync = off/);
    assert.match(notices.join('\n'), /synchronous_standby_names is empty/);
    await cluster.query('ALTER ROLE guest SET synchronous_commit = off');
    await cluster.query('CREATE SCHEMA raised AUTHORIZATION guest');
    const { notices: raised, engine } = await opened.open({ url: cluster.url('postgres', 'guest'), schema: 'raised' });
    assert.match(raised.join('\n'), /synchronous_commit = off; sessions of this server use .*on/);
    await engine.append([entry('x')], logStart);
  });
});
