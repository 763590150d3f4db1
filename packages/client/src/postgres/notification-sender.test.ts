import { describe, expect, test } from 'vitest';
import { NotificationSender } from './notification-sender.ts';
import type { PostgresPool } from './postgres-pool.ts';
import { StatementRunner } from './statement-runner.ts';

/** A fake database that records the names of each statement, and answers when the test says so. */
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

  /** Answers the oldest pending statement. */
  async answer(error?: Error): Promise<void> {
    await flushed();
    this.#answers.shift()?.(error);
    await flushed();
  }
}

const flushed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('NotificationSender', () => {
  test('sends one statement at a time, the next one with all names queued meanwhile', async () => {
    const database = new SlowDatabase();
    const sender = new NotificationSender(new StatementRunner(database));
    const told: string[] = [];
    const notify = (name: string): void => void sender.notify(name).then(() => told.push(name));
    notify('a');
    await flushed();
    for (const name of ['b', 'c', 'b']) notify(name);
    await flushed();
    expect([database.told, told]).toEqual([[['a']], []]);
    await database.answer();
    expect([database.told, told]).toEqual([[['a'], ['b', 'c']], ['a']]);
    await database.answer();
    expect(told).toEqual(['a', 'b', 'c', 'b']);
  });

  test('delays a notification without urgency to the next statement, or sends it alone', async () => {
    const database = new SlowDatabase();
    const sender = new NotificationSender(new StatementRunner(database));
    sender.notifySoon('a');
    const told = sender.notify('b');
    await database.answer();
    await told;
    sender.notifySoon('c');
    sender.notifySoon('d');
    while (database.told.length < 2) await flushed();
    expect(database.told).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  test('continues after a failed statement, and when the backend is closed', async () => {
    const database = new SlowDatabase();
    const runner = new StatementRunner(database);
    const sender = new NotificationSender(runner);
    const lost = sender.notify('a');
    await database.answer(new Error('the connection broke'));
    await lost;
    const next = sender.notify('b');
    await database.answer();
    await next;
    expect(database.told).toEqual([['a'], ['b']]);
    runner.close();
    await sender.notify('c');
  });

  test('waits no longer than a second for an answer', async () => {
    const sender = new NotificationSender(new StatementRunner(new SlowDatabase()));
    const startedMs = performance.now();
    await sender.notify('a');
    expect(performance.now() - startedMs).toBeGreaterThan(900);
  });
});
