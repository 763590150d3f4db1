import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SendQueue } from './send-queue.ts';
import { systemClock } from '../../time/system-clock.ts';

const maxBytes = 100;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('items are sent in order, in messages within the size limit', async () => {
  const items = fc.array(fc.nat(120), { minLength: 1, maxLength: 60, size: 'max' });
  await fc.assert(
    fc.asyncProperty(items, async (said) => {
      const sent: (readonly number[])[] = [];
      const bound = { bytesOf: (bytes: number) => bytes, maxBytes };
      const outbox = new SendQueue<number>(systemClock, (message) => sent.push(message) > 0, bound);
      for (const item of said) outbox.put(item);
      await turn();
      expect(sent.flat()).toEqual(said);
      const bytesIn = (message: readonly number[]): number => message.reduce((sum, bytes) => sum + bytes, 0);
      for (const message of sent) expect(message.length === 1 || bytesIn(message) <= maxBytes).toBe(true);
      // A new message begins only if the next item does not fit into the one before.
      for (const [at, message] of sent.slice(1).entries()) {
        expect(bytesIn(sent[at] ?? []) + (message[0] ?? 0)).toBeGreaterThan(maxBytes);
      }
    }),
  );
});

test('items added while the stream is full wait until it has drained', async () => {
  const sent: (readonly string[])[] = [];
  let hasRoom = false;
  const outbox = new SendQueue<string>(systemClock, (message) => {
    sent.push(message);
    return hasRoom;
  });
  outbox.put('a');
  await turn();
  outbox.put('b');
  outbox.put('c');
  await turn();
  expect(sent).toEqual([['a']]);
  hasRoom = true;
  outbox.drained();
  await turn();
  expect(sent).toEqual([['a'], ['b', 'c']]);
});
