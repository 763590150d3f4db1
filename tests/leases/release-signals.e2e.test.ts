import assert from 'node:assert/strict';
import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { createLeaseManager, UsageError } from 'tenure';
import type { ReleaseSignal } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { runProgram } from './lease-program.ts';
import type { ProgramEnd } from './lease-program.ts';

const program = new URL('signalled-program.mjs', import.meta.url);
const releaseOn: readonly ReleaseSignal[] = ['SIGTERM', 'SIGINT'];
const activities = [
  ...['hold', 'disposed', 'wait', 'poll', 'work', 'nested', 'election', 'watch', 'membership'],
] as const;

interface RunOptions {
  readonly activity: string;
  readonly signals?: readonly NodeJS.Signals[];
  /** The line at which each of the signals is sent. */
  readonly at?: readonly string[];
  readonly [option: string]: unknown;
}

/** Runs the program, and sends it each signal when it prints the line of its place. */
async function run({ signals = ['SIGTERM'], at = ['ready'], ...rest }: RunOptions): Promise<ProgramEnd> {
  let sent = 0;
  return await runProgram(program, [JSON.stringify({ releaseOn, ...rest })], (line, child) => {
    if (sent < signals.length && line === at[sent]) child.kill(signals[sent++]);
  });
}

/** Nobody can release what a program leaves behind that ends at once when its signal aborts. */
const endsAtOnce: readonly string[] = ['hold'];

/** What is left of what the program held or waited for; the other manager's lease stays. */
const leftOver = `SELECT name, holder FROM tenure_entries WHERE holder <> 'other'`;

describe.skipIf(!hasPostgres()).concurrent('a process with leases in PostgreSQL that is told to end', () => {
  let database: PostgresDatabase;
  beforeAll(async () => {
    database = await PostgresDatabase.create();
  });
  afterAll(() => database.dispose());

  describe.each(activities)('in the middle of: %s', (activity) => {
    const ways = endsAtOnce.includes(activity) ? [false] : [false, true];
    test.each(ways)('releases all before it ends by the signal; its errors end it: %s', async (exits) => {
      const name = `test_${activity}_${exits}`;
      await database.query(`CREATE SCHEMA ${name}`);
      const spec = { kind: 'postgres', address: database.url(), schema: name };
      const ended = await run({ spec, activity, exits, signals: [exits ? 'SIGINT' : 'SIGTERM'] });
      assert.deepEqual([ended.errors, ended.code, ended.signal], ['', null, exits ? 'SIGINT' : 'SIGTERM']);
      assert.deepEqual(await database.query(leftOver.replace('tenure_entries', `${name}.tenure_entries`)), []);
    });
  });
});

describe.concurrent('a process that is told to end', () => {
  const spec = { kind: 'memory' };
  const leaving = ['leaving', 'leaving'];

  test('leaves the end to a program that listens for the signal, and tells it when all is released', async () => {
    const ended = await run({ spec, activity: 'watch', listens: true, exits: true });
    assert.deepEqual(
      [ended.lines, ended.errors, ended.code],
      [['ready', 'heard', 'leaving', 'caught ClosedError'], '', 1],
    );
  });

  test('tells such a program also by an error that nobody catches', async () => {
    const ended = await run({ spec, activity: 'watch', listens: true });
    assert.deepEqual([ended.lines, ended.code], [['ready', 'heard', 'leaving'], 1]);
    assert.match(ended.errors, /ClosedError: the lease manager/);
  });

  test('tells nobody before every manager has released', async () => {
    const ended = await run({ spec, activity: 'watch', slowly: true, exits: true });
    assert.deepEqual([ended.errors, ended.code, ended.signal], ['', null, 'SIGTERM']);
    assert.deepEqual(ended.lines.toSorted(), [...leaving, 'leaving', 'ready', 'slow', 'slow']);
  });

  test('releases nothing unless it is asked to', async () => {
    const ended = await run({ spec, activity: 'work', releaseOn: ['SIGINT'] });
    assert.deepEqual([ended.lines, ended.errors, ended.signal], [['ready'], '', 'SIGTERM']);
  });

  test('ends at once by a second signal, whichever it is', async () => {
    const signals = ['SIGTERM', 'SIGINT'] as const;
    const ended = await run({ spec, activity: 'hold', hangs: true, signals, at: ['ready', 'leaving'] });
    // By the first one it would end when the time for releasing is over.
    assert.deepEqual([ended.errors, ended.signal], ['', 'SIGINT']);
  });

  test('waits for a backend that hangs for no longer than its time', async () => {
    const ended = await run({ spec, activity: 'hold', hangs: true });
    assert.deepEqual([ended.errors, ended.signal], ['', 'SIGTERM']);
    // Each is tried once more at the end.
    assert.deepEqual(ended.lines, ['ready', ...leaving, ...leaving]);
  });

  test('does not hide an error of the program, and releases before it ends by it', async () => {
    const ended = await run({ spec, activity: 'own' });
    assert.deepEqual([ended.lines, ended.code, ended.signal], [['ready', 'leaving'], 1, null]);
    assert.match(ended.errors, /RangeError: of the program/);
  });
});

test('only signals that tell a process to end can be asked for', () => {
  for (const wrong of ['SIGTERM', ['SIGKILL'], ['TERM'], [1]]) {
    const options = { backend: memoryBackend(), releaseOn: wrong as unknown as readonly ReleaseSignal[] };
    assert.throws(() => createLeaseManager(options), UsageError);
  }
});
