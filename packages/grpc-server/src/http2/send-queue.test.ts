import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type QueuedStream, removeFromQueue, SendQueue } from './send-queue.ts';

class NumberedStream implements QueuedStream {
  readonly number: number;
  queue: SendQueue<never> | undefined = undefined;
  queuedBefore: QueuedStream | undefined = undefined;
  queuedAfter: QueuedStream | undefined = undefined;

  constructor(number: number) {
    this.number = number;
  }
}

function numbersIn(queue: SendQueue<NumberedStream>): number[] {
  const numbers: number[] = [];
  for (let each: QueuedStream | undefined = queue.first; each !== undefined; each = each.queuedAfter) {
    numbers.push((each as NumberedStream).number);
  }
  return numbers;
}

test('two queues behave as lists of which a stream is in one at most', () => {
  const step = fc.record({ to: fc.constantFrom('first', 'second', 'none'), stream: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const streams = Array.from({ length: 6 }, (_, i) => new NumberedStream(i));
      const queues = { first: new SendQueue<NumberedStream>(), second: new SendQueue<NumberedStream>() };
      const model: { first: number[]; second: number[] } = { first: [], second: [] };
      for (const { to, stream: number } of steps) {
        const stream = streams[number];
        if (stream === undefined) continue;
        model.first = model.first.filter((each) => each !== number);
        model.second = model.second.filter((each) => each !== number);
        if (to === 'first' || to === 'second') {
          model[to].push(number);
          queues[to].push(stream);
        } else {
          removeFromQueue(stream);
        }
        expect(numbersIn(queues.first)).toEqual(model.first);
        expect(numbersIn(queues.second)).toEqual(model.second);
      }
    }),
  );
});
