import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Libsql from 'libsql';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { BackendError } from '../errors/backend-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { backendConformance } from '../testing/index.ts';
import type { ConformanceStore } from '../testing/index.ts';
import { leaseSchemaSql } from './lease-schema.ts';
import { sqliteBackend } from './sqlite-backend.ts';
import type { SqliteDatabase } from './sqlite-database.ts';

interface Closable extends SqliteDatabase {
  close(): unknown;
}

type OpenFile = (path: string) => Closable;

const signal = new AbortController().signal;
const claim = { name: 'job', id: 'id', holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' } as const;
const key = { name: 'job', id: 'id', sequence: 1n };

const openLibsql: OpenFile = (path) => new Libsql(path) as unknown as Closable;

/** Node has a driver of its own from 22.13 on. */
function openNodeSqlite(): OpenFile | undefined {
  const nodeSqlite = process.getBuiltinModule?.('node:sqlite') as
    | { readonly DatabaseSync: new (path: string) => Closable }
    | undefined;
  return nodeSqlite && ((path) => new nodeSqlite.DatabaseSync(path));
}

const drivers: readonly (readonly [string, OpenFile | undefined])[] = [
  ['libsql', openLibsql],
  ['node:sqlite', openNodeSqlite()],
];

function temporaryFile(): { readonly path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-sqlite-'));
  return { path: join(folder, 'leases.db'), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A connection for each backend, as each process has one. */
async function makeStore(open: OpenFile): Promise<ConformanceStore> {
  const { path, remove } = temporaryFile();
  const databases: Closable[] = [];
  return {
    async open() {
      const database = open(path);
      databases.push(database);
      database.prepare('PRAGMA journal_mode = wal').all();
      const backend = sqliteBackend({ database });
      await backend.migrate();
      return backend;
    },
    async dispose() {
      for (const database of databases) database.close();
      remove();
    },
  };
}

for (const [driver, open] of drivers) {
  if (open === undefined) {
    console.log(`not tested: this Node has no ${driver}`);
    continue;
  }
  describe(`sqliteBackend on ${driver}`, () => {
    // `tests/library/backend-contracts.long.test.ts` has the other journal.
    describe('with the journal wal', () => {
      backendConformance(() => makeStore(open), { framework: { describe, test, afterAll }, seed: inject('seed') });
    });

    test('hints at once of its own changes', async () => {
      await withFile(open, async (database) => {
        const backend = sqliteBackend({ database });
        await backend.migrate();
        const hinted = new Promise<void>((resolve) => backend.watch('job', resolve));
        await backend.enter(claim, { onlyIfHolds: false, signal });
        await expect(hinted).resolves.toBeUndefined();
      });
    });

    test('runs the same SQL as the file in the package, any number of times', async () => {
      const file = new URL('../../sql/sqlite/0001-leases.sql', import.meta.url);
      const text = readFileSync(file, 'utf8');
      expect(text.endsWith(`BEGIN IMMEDIATE;\n\n${leaseSchemaSql}\nCOMMIT;\n`), 'copy lease-schema.ts into it').toBe(
        true,
      );
      await withFile(open, async (database) => {
        for (let times = 0; times < 2; times++) database.exec(text);
        const backend = sqliteBackend({ database });
        await backend.migrate();
        expect((await backend.enter(claim, { onlyIfHolds: true, signal })).sequence).toBe(1n);
      });
    });

    test('reports what to do when it is not migrated, closed, locked or in a transaction', async () => {
      await withFile(open, async (database, path) => {
        const backend = sqliteBackend({ database, lockedAtMostMs: 200 });
        const fails = async (code: string, words: RegExp): Promise<void> => {
          for (const call of [() => backend.list('job', signal), () => backend.renew([{ ...key, ttlMs: 9 }], signal)]) {
            const error = await call().catch((cause: unknown) => cause);
            expect(error).toBeInstanceOf(BackendError);
            expect(error).toMatchObject({ backendCode: code, message: expect.stringMatching(words) });
          }
        };
        await fails('not-migrated', /backend\.migrate\(\)/);
        await backend.migrate();
        await backend.enter({ ...claim, ttlMs: 1 }, { onlyIfHolds: false, signal });
        const other = open(path);
        other.exec('BEGIN EXCLUSIVE');
        await fails('unavailable', /kept the file locked for 200 ms/);
        other.exec('ROLLBACK');
        other.close();
        database.exec('BEGIN');
        await expect(backend.leave(key, signal)).rejects.toThrow(/a connection of its own/);
        database.exec('ROLLBACK');
        database.close();
        await fails('closed', /before its database/);
      });
    });
  });
}

test('sqliteBackend refuses an invalid database and invalid times', () => {
  const database = openLibsql(':memory:');
  const wrong = [{}, { database: {} }, { database, pollIntervalMs: Number.NaN }, { database, lockedAtMostMs: 0 }];
  for (const options of wrong) {
    expect(() => sqliteBackend(options as { database: SqliteDatabase })).toThrow(UsageError);
  }
});

test('lets no entry expire before its TTL, and none a millisecond later than necessary', async () => {
  await withFile(openLibsql, async (database) => {
    const backend = sqliteBackend({ database });
    await backend.migrate();
    const endOf = database.prepare('SELECT expires_at_ms FROM tenure_entries WHERE id = ?');
    for (let number = 0; number < 200; number++) {
      const id = `id ${number}`;
      const beforeMs = Date.now();
      await backend.enter({ ...claim, id }, { onlyIfHolds: false, signal });
      const [row] = endOf.all(id) as readonly { readonly expires_at_ms: number }[];
      const endMs = (row?.expires_at_ms ?? 0) - claim.ttlMs;
      // A clock in whole milliseconds shows the same for up to one more, which the entry is given.
      expect(beforeMs + 1, `${endMs - beforeMs} ms after it was asked`).toBeLessThanOrEqual(endMs);
      expect(endMs, `${endMs - beforeMs} ms after it was asked`).toBeLessThanOrEqual(Date.now() + 1);
    }
  });
});

async function withFile(open: OpenFile, work: (database: Closable, path: string) => Promise<void>): Promise<void> {
  const { path, remove } = temporaryFile();
  const database = open(path);
  try {
    await work(database, path);
  } finally {
    try {
      database.close();
    } catch {
      // The test has closed it.
    }
    remove();
  }
}
