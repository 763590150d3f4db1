import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { createLeaseManager, UsageError } from 'tenure';
import type { ReleaseSignal } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

/** A program that ends at once when its signal aborts leaves its leases behind. */
const endsAtOnce: readonly string[] = ['hold'];

/** The remaining entries of the program; the other manager's lease stays. */
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
      expect([ended.errors, ended.code, ended.signal]).toStrictEqual(['', null, exits ? 'SIGINT' : 'SIGTERM']);
      expect(await database.query(leftOver.replace('tenure_entries', `${name}.tenure_entries`))).toEqual([]);
    });
  });
});

describe.concurrent('a process that is told to end', () => {
  const spec = { kind: 'memory' };
  const leaving = ['leaving', 'leaving'];

  test('does not end a program that listens for the signal, and reports when all is released', async () => {
    const ended = await run({ spec, activity: 'watch', listens: true, exits: true });
    expect([ended.lines, ended.errors, ended.code]).toEqual([
      ['ready', 'heard', 'leaving', 'caught ClosedError'],
      '',
      1,
    ]);
  });

  test('reports it to such a program also by an uncaught error', async () => {
    const ended = await run({ spec, activity: 'watch', listens: true });
    expect([ended.lines, ended.code]).toEqual([['ready', 'heard', 'leaving'], 1]);
    expect(ended.errors).toMatch(/ClosedError: the lease manager/);
  });

  test('rejects no call before every manager has released', async () => {
    const ended = await run({ spec, activity: 'watch', slowly: true, exits: true });
    expect([ended.errors, ended.code, ended.signal]).toEqual(['', null, 'SIGTERM']);
    expect(ended.lines.toSorted()).toStrictEqual([...leaving, 'leaving', 'ready', 'slow', 'slow']);
  });

  test('releases nothing without `releaseOn`', async () => {
    const ended = await run({ spec, activity: 'work', releaseOn: ['SIGINT'] });
    expect([ended.lines, ended.errors, ended.signal]).toEqual([['ready'], '', 'SIGTERM']);
  });

  test('ends at once by a second signal, whichever it is', async () => {
    const signals = ['SIGTERM', 'SIGINT'] as const;
    const ended = await run({ spec, activity: 'hold', hangs: true, signals, at: ['ready', 'leaving'] });
    // After the first signal alone it would end when the time for releasing is over.
    expect([ended.errors, ended.signal]).toEqual(['', 'SIGINT']);
  });

  test('waits for a hanging backend only until its time limit', async () => {
    const ended = await run({ spec, activity: 'hold', hangs: true });
    expect([ended.errors, ended.signal]).toEqual(['', 'SIGTERM']);
    // Each is tried once more at the end.
    expect(ended.lines).toStrictEqual(['ready', ...leaving, ...leaving]);
  });

  test('does not hide an error of the program, and releases before it ends by it', async () => {
    const ended = await run({ spec, activity: 'own' });
    expect([ended.lines, ended.code, ended.signal]).toEqual([['ready', 'leaving'], 1, null]);
    expect(ended.errors).toMatch(/RangeError: of the program/);
  });
});

test('accepts only signals that end a process', () => {
  for (const wrong of ['SIGTERM', ['SIGKILL'], ['TERM'], [1]]) {
    const options = { backend: memoryBackend(), releaseOn: wrong as unknown as readonly ReleaseSignal[] };
    expect(() => createLeaseManager(options)).toThrow(UsageError);
  }
});
