import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../cluster/cluster.ts';
import { ClusterMember } from '../cluster/cluster-member.ts';
import { refusedStart } from './refused-start.ts';

describe.skipIf(!hasPostgres())('tenure serve on a PostgreSQL that it cannot use', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-starts-'));
  let database: PostgresCluster;

  beforeAll(async () => {
    chmodSync(folder, 0o755);
    const access = join(folder, 'pg_hba.conf');
    const rules = ['host all postgres 127.0.0.1/32 trust', 'host all reader 127.0.0.1/32 trust'];
    writeFileSync(access, [...rules, 'host all asked 127.0.0.1/32 scram-sha-256', ''].join('\n'));
    database = await PostgresCluster.create({ hba_file: access });
    await database.query(`CREATE ROLE asked LOGIN PASSWORD 'right'`);
    await database.query('CREATE ROLE reader LOGIN');
  });

  afterAll(async () => {
    await database?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const refused = async (engine: string, ...flags: readonly string[]): Promise<string> => {
    const message = await refusedStart({ engine, flags });
    await nothingLeft();
    return message;
  };

  /** The results of several concurrent starts. */
  const allRefused = async (...engines: readonly string[]): Promise<readonly string[]> => {
    const messages = await Promise.all(engines.map((engine) => refusedStart({ engine })));
    await nothingLeft();
    return messages;
  };

  const nothingLeft = async (): Promise<void> => {
    const left = `SELECT pid FROM pg_stat_activity WHERE application_name ~ '^tenure '`;
    await eventually('no connection is left', async () =>
      (await database.query(left)).length === 0 ? true : undefined,
    );
  };

  test('because nothing listens there, or another service does', async () => {
    const web = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => web.once('listening', resolve));
    const { port } = web.address() as AddressInfo;
    const [silent, unknown, other] = await allRefused(
      'postgres://postgres@127.0.0.1:1/postgres',
      'postgres://postgres@no-such-host.invalid/postgres',
      `postgres://postgres@127.0.0.1:${port}/postgres`,
    );
    web.close();
    expect(silent).toMatch(/127\.0\.0\.1:1: .*ECONNREFUSED.*--engine/);
    expect(unknown).toMatch(/no-such-host\.invalid:5432: .*--engine/);
    expect(other).toMatch(new RegExp(`127.0.0.1:${port}: .*--engine`));
  });

  test('because of the database or the user in the address', async () => {
    const [missing, stranger, noAddress, standby] = await allRefused(
      database.url('missing'),
      database.url('postgres', 'stranger'),
      'postgres://postgres@[::1/x',
      `${database.url()}?target_session_attrs=standby`,
    );
    expect(missing).toMatch(/"missing" does not exist.*createdb.*URL/);
    expect(stranger).toMatch(/stranger.*pg_hba\.conf/);
    expect(noAddress).toMatch(/address of the PostgreSQL engine cannot be used/);
    expect(standby).toMatch(/read-write/);
  });

  test('because of the password, which it does not print', async () => {
    const url = `postgres://asked:wrong-one@127.0.0.1:${database.port}/postgres`;
    const message = await refused(url);
    expect(message).toMatch(/password authentication failed.*PGPASSWORD/);
    expect(message).not.toContain('wrong-one');
    expect(await refused(`postgres://asked@127.0.0.1:${database.port}/postgres`)).toMatch(/password.*PGPASSWORD/i);
    const message3 = await refusedStart({
      engine: `postgres://asked@127.0.0.1:${database.port}/postgres`,
      env: { PGPASSWORD: 'right' },
    });
    expect(message3).toMatch(/CREATE SCHEMA IF NOT EXISTS tenure/);
  });

  test('because it may not create the schema, or not write to it', async () => {
    const asReader = database.url('postgres', 'reader');
    expect(await refused(asReader)).toMatch(/as the owner of the database: CREATE SCHEMA.*OWNER TO "reader"/);
    const flags = ['--engine-schema', 'theirs'];
    const member = await ClusterMember.start({ name: 'a', engine: database.url(), flags });
    await member.stop();
    await database.query('GRANT USAGE ON SCHEMA theirs TO reader');
    const readOnly = await refused(asReader, ...flags);
    expect(readOnly).toMatch(/permission denied for table meta; .*GRANT USAGE ON SCHEMA theirs TO "reader";/);
    await database.query('GRANT SELECT ON ALL TABLES IN SCHEMA theirs TO reader');
    const message = await refused(asReader, ...flags);
    const statements = /run as the owner of the schema: (GRANT .*;)$/.exec(message)?.[1];
    await database.query(statements ?? message);
    const second = await ClusterMember.start({ name: 'b', engine: asReader, flags });
    await second.put('a', '1');
    await second.stop();
  });

  test('because the schema is of a newer version, or not its own', async () => {
    const flags = ['--engine-schema', 'newer'];
    const member = await ClusterMember.start({ name: 'a', engine: database.url(), flags });
    await member.stop();
    await database.query('UPDATE newer.meta SET version = 2');
    expect(await refused(database.url(), ...flags)).toMatch(/made by a newer Tenure: start that one/);
    await database.query('CREATE SCHEMA shop');
    await database.query('CREATE TABLE shop.orders (number int)');
    const shop = await refused(database.url(), '--engine-schema', 'shop');
    expect(shop).toMatch(/shop holds orders .* not Tenure's; give a schema of its own with --engine-schema/);
    expect(await database.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'shop'`)).toHaveLength(1);
    expect(await refused(database.url(), '--engine-schema', 'Not-One')).toMatch(/cannot name the schema/);
  });

  test('because the log is of another cluster, or empty', async () => {
    const flags = ['--engine-schema', 'other'];
    const empty = await refused(database.url(), ...flags, '--cluster-id', 'abc');
    expect(empty).toMatch(/this log is empty, and --cluster-id asks for the cluster abc: give the right --engine/);
    const member = await ClusterMember.start({ name: 'a', engine: database.url(), flags });
    const { header } = await member.cluster.memberList({});
    await member.stop();
    const id = header?.clusterId.toString(16) ?? '';
    const other = await refused(database.url(), ...flags, '--cluster-id', 'abc');
    expect(other).toContain(`this log belongs to the cluster ${id}, and --cluster-id asks for the cluster abc`);
    const right = await ClusterMember.start({
      name: 'a',
      engine: database.url(),
      flags: [...flags, '--cluster-id', id],
    });
    await right.stop();
  });

  test('and stops when a newer Tenure takes the schema over while it runs', async () => {
    const flags = ['--engine-schema', 'upgraded'];
    const members = await Promise.all(
      ['a', 'b'].map((name) => ClusterMember.start({ name, engine: database.url(), flags })),
    );
    await database.query('UPDATE upgraded.meta SET version = 2');
    for (const member of members) {
      const { code, err } = await member.process.ended;
      expect(code).toBe(1);
      expect(err).toMatch(/\nError: the server stopped: .*made by a newer Tenure: start that one[^\n]*\n$/);
    }
  });
});

describe.skipIf(!hasPostgres())('tenure serve on a PostgreSQL that may lose acknowledged writes', () => {
  let primary: PostgresCluster;
  let standby: PostgresCluster | undefined;

  beforeAll(async () => {
    primary = await PostgresCluster.create();
  });

  afterAll(async () => {
    await standby?.dispose();
    await primary?.dispose();
  });

  /** The warnings at its start, once it has written to the log. */
  async function warnings(): Promise<string> {
    const member = await ClusterMember.start({ name: 'a', engine: primary.url() });
    await member.put('a', '1');
    await member.stop();
    return member.process.err;
  }

  async function set(name: string, value: string): Promise<void> {
    await primary.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    await primary.query('SELECT pg_reload_conf()');
    await eventually(`${name} is ${value}`, async () => {
      const [row] = await primary.query(`SHOW ${name}`);
      return row?.[name] === value ? true : undefined;
    });
  }

  test('warns, and stops warning once a standby has each commit', async () => {
    const alone =
      /replicates to no standby synchronously \(synchronous_standby_names is empty\): what was acknowledged/;
    expect(await warnings()).toMatch(alone);
    standby = await primary.createStandby();
    expect(await warnings()).toMatch(alone);
    await set('synchronous_standby_names', '*');
    const replicated = await warnings();
    expect(replicated).not.toMatch(/standby/);
    // Of all warnings only the one about this test's own database remains, which is in memory.
    expect(replicated.trim().split('\n')).toEqual([expect.stringContaining('fsync = off')]);
    await set('synchronous_commit', 'local');
    expect(await warnings()).toMatch(/synchronous_commit = local, which waits for no standby/);
    await set('synchronous_commit', 'remote_apply');
    expect(await warnings()).not.toMatch(/standby/);
  });
});
