import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SendWindows } from './send-windows.ts';
import { maxWindowBytes } from './frame-type.ts';

const streamCount = 3;
const large = fc.oneof(fc.nat(100), fc.integer({ min: maxWindowBytes - 70_000, max: maxWindowBytes }));

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), stream: fc.nat(streamCount - 1), bytes: large }),
  fc.record({ kind: fc.constant('send' as const), stream: fc.nat(streamCount - 1), bytes: fc.nat(100_000) }),
  fc.record({ kind: fc.constant('initial' as const), stream: fc.constant(0), bytes: large }),
  fc.record({ kind: fc.constant('close' as const), stream: fc.nat(streamCount - 1), bytes: fc.constant(0) }),
);

test('a change is refused exactly when a window of an open stream exceeds the limit', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const windows = new SendWindows();
      const open = new Map(Array.from({ length: streamCount }, (_, i) => [i, { sendDelta: 0 }]));
      for (const { kind, stream: index, bytes } of steps) {
        const stream = open.get(index);
        let isAllowed = true;
        if (kind === 'close') open.delete(index);
        else if (kind === 'initial') isAllowed = windows.setInitial(bytes, open.values());
        else if (stream !== undefined && kind === 'add') isAllowed = windows.addToStream(stream, bytes);
        else if (stream !== undefined) windows.sent(stream, Math.max(0, Math.min(bytes, windows.ofStream(stream))));
        const isWithin = [...open.values()].every((each) => windows.ofStream(each) <= maxWindowBytes);
        expect(isAllowed).toBe(isWithin);
        if (!isAllowed) return;
      }
    }),
    { numRuns: 1000 },
  );
});

test('the window of the connection is that of all streams', () => {
  const windows = new SendWindows();
  const one = { sendDelta: 0 };
  const other = { sendDelta: 0 };
  windows.sent(one, 60_000);
  windows.sent(other, 5535);
  expect(windows.connection).toBe(0);
  expect(windows.ofStream(one)).toBe(5535);
  windows.setInitial(10_000, [one, other]);
  expect(windows.ofStream(one)).toBe(-50_000);
  expect(windows.connection).toBe(0);
  expect(windows.addToConnection(maxWindowBytes)).toBe(true);
  expect(windows.addToConnection(1)).toBe(false);
});
