import { readFileSync } from 'node:fs';
import { hasMariadb, hasPostgres, MariadbServer, PostgresDatabase } from '@tenure/test-support';
import Database from 'libsql';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { fenceStatements, migrateFences } from 'tenure/guard';
import type { SqlDialect } from 'tenure/guard';
import { guardConformance } from 'tenure/testing';
import type { ConformanceGuard } from 'tenure/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const framework = { framework: { describe, test, afterAll } };
/** The table as version 0.1.0 created it in every database. */
const oldTable =
  'CREATE TABLE IF NOT EXISTS tenure_fences (resource varchar(255) NOT NULL PRIMARY KEY, token bigint NOT NULL)';

function script(dialect: SqlDialect): string {
  const file = new URL(`../../packages/client/sql/${dialect}/0002-fences.sql`, import.meta.url);
  return readFileSync(file, 'utf8');
}

/** `change` runs a statement and returns how many rows it found. */
function tableGuard(
  dialect: SqlDialect,
  change: (text: string, values: string[]) => Promise<number>,
  dispose: () => Promise<void> = async () => undefined,
): ConformanceGuard {
  return {
    async write(hold) {
      const { ensure, check } = fenceStatements(hold, { dialect });
      await change(ensure.text, [...ensure.values]);
      return (await change(check.text, [...check.values])) === 1;
    },
    dispose,
  };
}

describe.skipIf(!hasPostgres())('a table of tokens in PostgreSQL', () => {
  let database: PostgresDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await PostgresDatabase.create();
    pool = new pg.Pool({ connectionString: database.url() });
  });
  afterAll(async () => {
    await pool.end();
    await database.dispose();
  });
  const query = (sql: string): Promise<unknown> => pool.query(sql);
  const guard = (): ConformanceGuard => {
    return tableGuard('postgres', async (text, values) => (await pool.query(text, values)).rowCount ?? 0);
  };

  describe('created by many processes at once', () => {
    beforeAll(async () => {
      await pool.query('DROP TABLE IF EXISTS tenure_fences');
      await Promise.all(Array.from({ length: 8 }, () => migrateFences(query, { dialect: 'postgres' })));
    });
    guardConformance(guard, framework);
  });

  for (const [how, migrate] of [
    ['migrateFences', () => migrateFences(query, { dialect: 'postgres' })],
    ['its SQL file', () => pool.query(script('postgres'))],
  ] as const) {
    describe(`of the old shape, repaired by ${how}`, () => {
      beforeAll(async () => {
        await pool.query(`DROP TABLE IF EXISTS tenure_fences; ${oldTable}`);
        await pool.query(`INSERT INTO tenure_fences VALUES ('Job', 5), ('job', 6), ('Ä', 7)`);
        for (let times = 0; times < 2; times++) await migrate();
      });
      guardConformance(guard, framework);

      test('keeps its rows', async () => {
        const { rows } = await pool.query(`SELECT resource, token FROM tenure_fences WHERE token < 9 ORDER BY token`);
        const kept = [
          ['Job', '5'],
          ['job', '6'],
          ['Ä', '7'],
        ].map(([resource, token]) => ({ resource, token }));
        expect(rows).toStrictEqual(kept);
      });
    });
  }

  test('is left unchanged by users that may neither create nor alter it', async () => {
    const other = await PostgresDatabase.create();
    try {
      const owner = new pg.Pool({ connectionString: other.url() });
      await migrateFences((sql) => owner.query(sql), { dialect: 'postgres', table: 'public.fences' });
      const role = `fence_worker_${process.pid}`;
      await owner.query(`CREATE ROLE ${role}; GRANT SELECT, INSERT, UPDATE ON public.fences TO ${role};
        REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
      const client = await owner.connect();
      await client.query(`SET ROLE ${role}`);
      const migrated = migrateFences((sql) => client.query(sql), { dialect: 'postgres', table: 'public.fences' });
      await expect(migrated).resolves.toBeUndefined();
      await client.query('RESET ROLE');
      client.release();
      await owner.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
      await owner.end();
    } finally {
      await other.dispose();
    }
  });
});

describe.skipIf(!hasMariadb())('a table of tokens in MariaDB', () => {
  let server: MariadbServer;
  let pool: mysql.Pool;
  beforeAll(async () => {
    server = await MariadbServer.start();
    await server.query('CREATE DATABASE fences');
    pool = mysql.createPool(server.options('fences'));
  });
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });
  const query = (sql: string): Promise<unknown> => pool.query(sql);
  const guardOf = (found: () => mysql.Pool) => (): ConformanceGuard => {
    return tableGuard('mysql', async (text, values) => {
      return ((await found().execute(text, values))[0] as { affectedRows: number }).affectedRows;
    });
  };

  describe('created by many processes at once', () => {
    beforeAll(async () => {
      await pool.query('DROP TABLE IF EXISTS tenure_fences');
      await Promise.all(Array.from({ length: 5 }, () => migrateFences(query, { dialect: 'mysql' })));
    });
    guardConformance(
      guardOf(() => pool),
      framework,
    );
  });

  describe('over connections of another character set and without strict mode', () => {
    let latin: mysql.Pool;
    beforeAll(async () => {
      latin = mysql.createPool({ ...server.options('fences'), charset: 'latin1' });
      latin.pool.on('connection', (connection) => void connection.query(`SET sql_mode = ''`));
    });
    afterAll(() => latin.end());
    guardConformance(
      guardOf(() => latin),
      framework,
    );
  });

  const shapes = ['latin1', 'utf8mb3', 'utf8mb4 COLLATE utf8mb4_general_ci', 'utf8mb4 COLLATE utf8mb4_nopad_bin'];
  for (const [how, migrate] of [
    ['migrateFences', () => migrateFences(query, { dialect: 'mysql' })],
    ['its SQL file', () => server.query(`USE fences; ${script('mysql')}`)],
  ] as const) {
    describe.each(shapes)(`of the old shape in %s, repaired by ${how}`, (shape) => {
      beforeAll(async () => {
        await pool.query('DROP TABLE IF EXISTS tenure_fences');
        await pool.query(`${oldTable} CHARACTER SET ${shape}`);
        await pool.query(`INSERT INTO tenure_fences VALUES ('Job', 5), ('Ärger', 7), ('${'x'.repeat(255)}', 8)`);
        for (let times = 0; times < 2; times++) await migrate();
        await Promise.all(Array.from({ length: 5 }, migrate));
      });
      guardConformance(
        guardOf(() => pool),
        framework,
      );

      test('keeps its rows, as bytes in UTF-8', async () => {
        const text = 'SELECT HEX(resource) AS bytes, token FROM tenure_fences WHERE token < 9 ORDER BY token';
        const [rows] = (await pool.query(text)) as unknown as [readonly { bytes: string; token: number }[], unknown];
        expect(rows.map(({ bytes, token }) => [Buffer.from(bytes, 'hex').toString('utf8'), token])).toStrictEqual([
          ['Job', 5],
          ['Ärger', 7],
          ['x'.repeat(255), 8],
        ]);
        const old = fenceStatements({ name: 'Ärger', fencingToken: 6n }, { dialect: 'mysql' }).check;
        const [refused] = await pool.execute(old.text, [...old.values]);
        expect((refused as { affectedRows: number }).affectedRows).toBe(0);
      });
    });
  }

  test('is left unchanged by users that may neither create nor alter it', async () => {
    await server.query('CREATE DATABASE others');
    await migrateFences(query, { dialect: 'mysql', table: 'others.fences' });
    await server.query(`CREATE USER worker@'%'; GRANT SELECT, INSERT, UPDATE ON others.* TO worker@'%'`);
    const worker = mysql.createPool(server.options('others', 'worker'));
    const migrated = migrateFences((sql) => worker.query(sql), { dialect: 'mysql', table: 'fences' });
    await expect(migrated).resolves.toBeUndefined();
    await worker.end();
  });
});

describe('a table of tokens in SQLite', () => {
  for (const [how, begin] of [
    ['made', () => undefined],
    ['of the old shape', (database: Database.Database) => void database.exec(oldTable)],
  ] as const) {
    describe(how, () => {
      guardConformance(async () => {
        const database = new Database(':memory:');
        begin(database);
        for (let times = 0; times < 2; times++) {
          await migrateFences((sql) => database.exec(sql), { dialect: 'sqlite' });
          database.exec(script('sqlite'));
        }
        return tableGuard(
          'sqlite',
          async (text, values) => database.prepare(text).run(...values).changes,
          async () => void database.close(),
        );
      }, framework);
    });
  }
});
