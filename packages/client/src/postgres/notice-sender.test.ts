import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { NoticeSender } from './notice-sender.ts';
import type { PostgresPool } from './postgres-pool.ts';
import { StatementRunner } from './statement-runner.ts';

/** Stands for the database: writes down which names each statement tells of, and answers when it is told to. */
class SlowDatabase implements PostgresPool {
  readonly told: string[][] = [];
  readonly #answers: ((error?: Error) => void)[] = [];

  connect: PostgresPool['connect'] = async () => ({
    query: (_text, values) => {
      this.told.push(values?.[0] as string[]);
      return new Promise((resolve, reject) => {
        this.#answers.push((error) => (error === undefined ? resolve({ rows: [] }) : reject(error)));
      });
    },
    on: () => undefined,
    removeListener: () => undefined,
    release: () => undefined,
  });

  /** Answers the oldest statement that waits. */
  async answer(error?: Error): Promise<void> {
    await flushed();
    this.#answers.shift()?.(error);
    await flushed();
  }
}

const flushed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('NoticeSender', () => {
  test('sends one statement at a time, the next one with all names that came meanwhile', async () => {
    const database = new SlowDatabase();
    const sender = new NoticeSender(new StatementRunner(database));
    const told: string[] = [];
    const tell = (name: string): void => void sender.tell(name).then(() => told.push(name));
    tell('a');
    await flushed();
    for (const name of ['b', 'c', 'b']) tell(name);
    await flushed();
    assert.deepEqual([database.told, told], [[['a']], []]);
    await database.answer();
    assert.deepEqual([database.told, told], [[['a'], ['b', 'c']], ['a']]);
    await database.answer();
    assert.deepEqual(told, ['a', 'b', 'c', 'b']);
  });

  test('lets what has time go with the next one, and sends it alone when there is none', async () => {
    const database = new SlowDatabase();
    const sender = new NoticeSender(new StatementRunner(database));
    sender.tellSoon('a');
    const told = sender.tell('b');
    await database.answer();
    await told;
    sender.tellSoon('c');
    sender.tellSoon('d');
    while (database.told.length < 2) await flushed();
    assert.deepEqual(database.told, [
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  test('goes on when one could not be sent, and when the backend is closed', async () => {
    const database = new SlowDatabase();
    const runner = new StatementRunner(database);
    const sender = new NoticeSender(runner);
    const lost = sender.tell('a');
    await database.answer(new Error('the connection broke'));
    await lost;
    const next = sender.tell('b');
    await database.answer();
    await next;
    assert.deepEqual(database.told, [['a'], ['b']]);
    runner.close();
    await sender.tell('c');
  });

  test('waits no longer than a second for an answer', async () => {
    const sender = new NoticeSender(new StatementRunner(new SlowDatabase()));
    const startedMs = performance.now();
    await sender.tell('a');
    assert.ok(performance.now() - startedMs > 900);
  });
});
