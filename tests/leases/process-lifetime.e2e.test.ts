import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasMariadb, hasPostgres, MariadbServer, PostgresDatabase, startDynalite } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import { runProgram } from './lease-program.ts';

const program = new URL('active-program.mjs', import.meta.url);
const activities = [
  ...['hold', 'wait', 'work', 'election', 'standby', 'ineligible', 'watch', 'observe', 'membership', 'follower'],
];

/** The warning of the AWS SDK about the version of Node. */
const sdkWarning = /^\(node:\d+\) Warning: NodeVersionSupportWarning[^]*? was created\)\n$/;

interface Place {
  /** With `endsPool` the program itself ends the pool of its driver when all is done. */
  readonly spec: object;
  dispose(): Promise<void>;
}

const [, tenure] = etcdServerKinds;
const places: Readonly<Record<string, { readonly isThere: boolean; readonly open: () => Promise<Place> }>> = {
  memory: { isThere: true, open: async () => ({ spec: { kind: 'memory' }, dispose: async () => undefined }) },
  SQLite: {
    isThere: true,
    open: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tenure-stays-'));
      const spec = { kind: 'sqlite', path: join(folder, 'leases.db') };
      return { spec, dispose: async () => rmSync(folder, { recursive: true, force: true }) };
    },
  },
  PostgreSQL: {
    isThere: hasPostgres(),
    open: async () => {
      const database = await PostgresDatabase.create();
      const spec = { kind: 'postgres', address: database.url(), listens: true, allowExitOnIdle: true };
      return { spec, dispose: () => database.dispose() };
    },
  },
  MariaDB: {
    isThere: hasMariadb(),
    open: async () => {
      const server = await MariadbServer.start();
      await server.query('CREATE DATABASE stays');
      const spec = { kind: 'mysql', options: server.options('stays'), endsPool: true };
      return { spec, dispose: () => server.stop() };
    },
  },
  DynamoDB: {
    isThere: true,
    open: async () => {
      const { port, stop } = await startDynalite();
      return { spec: { kind: 'dynamodb', address: `127.0.0.1:${port}` }, dispose: stop };
    },
  },
  "Tenure's server": {
    isThere: true,
    open: async () => {
      const server = await tenure!.start();
      return { spec: { kind: 'etcd', address: server.endpoint }, dispose: () => server.dispose() };
    },
  },
};

describe.concurrent.each(Object.entries(places).filter(([, { isThere }]) => isThere))(
  'a process with leases in %s',
  (name, kind) => {
    let place: Place;
    beforeAll(async () => {
      place = await kind.open();
    });
    afterAll(() => place.dispose());

    const run = (options: object) => runProgram(program, [JSON.stringify({ spec: place.spec, ...options })]);

    test('stays alive for operations in progress, and ends by itself after them', async () => {
      const ended = await run({});
      expect([ended.errors.replace(sdkWarning, ''), ended.lines, ended.code]).toStrictEqual([
        '',
        [...activities, 'all done', 'ends by itself'],
        0,
      ]);
    });

    // The pool of mysql2 keeps a process alive by itself.
    if (name === 'MariaDB') return;
    test('does not stay alive with `unref`', async () => {
      const ended = await run({ unref: true, atOnce: true });
      expect([ended.errors.replace(sdkWarning, ''), ended.lines, ended.code]).toEqual([
        '',
        ['all done', 'ends by itself'],
        0,
      ]);
    });
  },
);
