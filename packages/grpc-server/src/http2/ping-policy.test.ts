import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PingPolicy } from './ping-policy.ts';

/** The PINGs of a client: how long after the last, with how many calls open, and whether data was sent since then. */
type Ping = readonly [afterMs: number, openStreams: number, wasSent?: 'sent'];

const hourMs = 3_600_000;

/** The rule of grpc-go (handlePing in internal/transport/http2_server.go) with etcd's settings. */
const table: readonly { readonly name: string; readonly pings: readonly Ping[]; readonly refused: number }[] = [
  { name: 'the first is never early', pings: [[0, 0]], refused: -1 },
  {
    name: 'two early ones are forgiven',
    pings: [
      [0, 1],
      [10, 1],
      [10, 1],
    ],
    refused: -1,
  },
  {
    name: 'the third early one is refused',
    pings: [
      [0, 1],
      [10, 1],
      [10, 1],
      [10, 1],
    ],
    refused: 3,
  },
  {
    name: 'exactly at the interval is not early',
    pings: [
      [0, 1],
      [5000, 1],
      [5000, 1],
      [5000, 1],
      [5000, 1],
    ],
    refused: -1,
  },
  {
    name: 'a millisecond before is',
    pings: [
      [0, 1],
      [4999, 1],
      [4999, 1],
      [4999, 1],
    ],
    refused: 3,
  },
  {
    name: 'without a call the interval is two hours',
    pings: [
      [0, 0],
      [hourMs, 0],
      [hourMs, 0],
      [hourMs, 0],
    ],
    refused: 3,
  },
  {
    name: 'two hours without a call are enough',
    pings: [
      [0, 0],
      [2 * hourMs, 0],
      [2 * hourMs, 0],
      [2 * hourMs, 0],
    ],
    refused: -1,
  },
  {
    name: 'strikes stay when the client behaves again',
    pings: [
      [0, 1],
      [1, 1],
      [1, 1],
      [9000, 1],
      [1, 1],
    ],
    refused: 4,
  },
  {
    name: 'strikes are forgotten when data is sent',
    pings: [
      [0, 1],
      [1, 1],
      [1, 1],
      [1, 1, 'sent'],
      [1, 1],
      [1, 1],
      [1, 1],
    ],
    refused: 6,
  },
  {
    name: 'a PING after data is never early',
    pings: [[0, 1], ...Array.from({ length: 50 }, () => [0, 1, 'sent'] as const)],
    refused: -1,
  },
];

function refusedAt(policy: PingPolicy, pings: readonly Ping[]): number {
  let nowMs = 0;
  return pings.findIndex(([afterMs, openStreams, wasSent]) => {
    nowMs += afterMs;
    if (wasSent === 'sent') policy.sent();
    return !policy.received(nowMs, openStreams);
  });
}

describe('as in grpc-go', () => {
  test.each(table)('$name', ({ pings, refused }) => {
    expect(refusedAt(new PingPolicy(5000), pings)).toBe(refused);
  });
});

/** The same function of grpc-go, line by line. */
function refusedByGrpcGo(pings: readonly Ping[], minTimeMs: number): number {
  let lastPingAtMs = -Infinity;
  let pingStrikes = 0;
  let nowMs = 0;
  return pings.findIndex(([afterMs, activeStreams, wasSent]) => {
    nowMs += afterMs;
    const last = lastPingAtMs;
    lastPingAtMs = nowMs;
    if (wasSent === 'sent') {
      pingStrikes = 0;
      return false;
    }
    const allowedMs = activeStreams < 1 ? 2 * hourMs : minTimeMs;
    if (last + allowedMs > nowMs) pingStrikes += 1;
    return pingStrikes > 2;
  });
}

test('for any sequence', () => {
  const afterMs = fc.constantFrom(0, 1, 999, 1000, 1001, 2 * hourMs - 1, 2 * hourMs);
  const ping = fc.tuple(afterMs, fc.nat(1), fc.constantFrom('sent' as const, undefined, undefined, undefined));
  fc.assert(
    fc.property(fc.array(ping, { maxLength: 20 }), (drawn) => {
      const pings: Ping[] = drawn.map(([ms, streams, sent]) => (sent ? [ms, streams, sent] : [ms, streams]));
      expect(refusedAt(new PingPolicy(1000), pings)).toBe(refusedByGrpcGo(pings, 1000));
    }),
  );
});
