import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
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
    expect(opened.open(options)).rejects.toMatchObject({
      name: 'EngineError',
      code,
      message: expect.stringMatching(message),
    });

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
      const ends = { code: 'unusable', message: expect.stringMatching(/version 2.*newer Tenure/) };
      const following = firstChunk(engine, logStart).catch((error: unknown) => error);
      await cluster.query(`UPDATE ${schema}.meta SET version = 2`);
      const ended = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^tenure '`;
      if (cut) await cluster.query(ended);
      expect(await following).toMatchObject(ends);
      for (;;) if (/version 2/.test(await reached('down'))) break;
      // It has ended permanently: its server stops, and a restart finds the same at the opening.
      await cluster.query(`UPDATE ${schema}.meta SET version = 1`);
      await expect(engine.append([entry('x')], logStart)).rejects.toMatchObject(ends);
      await expect(engine.tail()).rejects.toMatchObject(ends);
      const { engine: next } = await opened.open({ url: cluster.url(), schema });
      await next.append([entry('x')], logStart);
    });
  }

  test('a schema with other contents is refused, and nothing in it is changed', async () => {
    await cluster.query('CREATE SCHEMA theirs');
    await cluster.query('CREATE TABLE theirs.orders AS SELECT 1 AS number');
    await refused({ url: cluster.url(), schema: 'theirs' }, 'unusable', /theirs holds orders .*--engine-schema/);
    expect((await cluster.query(`SELECT FROM pg_tables WHERE schemaname = 'theirs'`)).length).toBe(1);
  });

  test('an invalid schema name is refused', async () => {
    for (const schema of ['', 'Upper', 'a"b', 'pg_mine', '1st', 'x'.repeat(49)]) {
      await refused({ url: cluster.url(), schema }, 'unusable', /cannot name the schema/);
    }
  });

  test('a user without the privilege to create the schema gets the commands for the owner, which work', async () => {
    const url = cluster.url('postgres', 'guest');
    const command = /run as the owner of the database: (CREATE SCHEMA .*); in "postgres"/;
    const error = (await opened.open({ url, schema: 'guests' }).catch((reason: unknown) => reason)) as Error;
    const statements = command.exec(error.message)?.[1];
    expect(statements, error.message).toBeDefined();
    await cluster.query(statements!);
    const { engine } = await opened.open({ url, schema: 'guests' });
    await engine.append([entry('x')], logStart);
  });

  test('a user without the privilege to read a log is refused with the reason', async () => {
    await opened.open({ url: cluster.url(), schema: 'private' });
    await refused(
      { url: cluster.url('postgres', 'guest'), schema: 'private' },
      'unusable',
      /permission denied.*GRANT USAGE ON SCHEMA private TO "guest"; GRANT SELECT, .* TO "guest";/,
    );
  });

  test('a missing database, and an unknown user', async () => {
    await refused({ url: cluster.url('elsewhere') }, 'unusable', /127.0.0.1:\d+: .*elsewhere.*createdb/);
    await refused({ url: cluster.url('postgres', 'unknown_user') }, 'unusable', /127.0.0.1:\d+: .*unknown_user/);
  });

  test('hosts without a listener are each named', async () => {
    const url = 'postgres://postgres@127.0.0.1:1,localhost:2/postgres';
    await refused({ url }, 'unavailable', /127.0.0.1:1: .*ECONNREFUSED.*localhost:2: .*ECONNREFUSED/);
  });

  test('dangerous settings of the database are reported', async () => {
    const { notices } = await opened.open({ url: cluster.url(), schema: 'warned' });
    expect(notices.length, notices.join('\n')).toBe(2);
    expect(notices.join('\n')).toMatch(/fsync = off/);
    expect(notices.join('\n')).toMatch(/synchronous_standby_names is empty/);
    await cluster.query('ALTER ROLE guest SET synchronous_commit = off');
    await cluster.query('CREATE SCHEMA raised AUTHORIZATION guest');
    const { notices: raised, engine } = await opened.open({ url: cluster.url('postgres', 'guest'), schema: 'raised' });
    expect(raised.join('\n')).toMatch(/synchronous_commit = off; sessions of this server use .*on/);
    await engine.append([entry('x')], logStart);
  });
});
