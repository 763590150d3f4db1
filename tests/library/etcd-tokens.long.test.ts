import { describe, expect, test } from 'vitest';
import { leasePrefix, shortTokens, Users, userServers } from './etcd-users.ts';

/** Its renewals are due after a third of it, when the last token has ended. */
const ttlMs = 3000;
const holdMs = 20_000;
const cases = userServers.flatMap(([kind, start]) =>
  shortTokens.map(([name, options]) => ({ kind, name, start: () => start(options) })),
);

const soon = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.concurrent.each(cases)('the library as a user of $kind with $name', { timeout: 90_000 }, ({ start }) => {
  test('keeps a lease, a waiter and a watch while each of its tokens ends within a second', async () => {
    await using users = await Users.start(start);
    const client = users.client();
    await using leases = users.leases(ttlMs);
    await using others = users.leases(ttlMs);
    const hold = await leases.acquire('nightly');
    const token = hold.fencingToken;
    const waiting = others.acquire('nightly');
    const stop = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { events } of client.watch({ prefix: `${leasePrefix}watched/` }, { signal: stop.signal })) {
        seen.push(...events.map(({ kv }) => kv.value));
      }
    })();
    const put: string[] = [];
    // Pauses of more than a second: no token survives one.
    for (let at = 0; at * 2000 < holdMs; at++) {
      await soon(2000);
      expect(hold.isHeld(), `after ${at} pauses`).toBe(true);
      put.push(`value ${at}`);
      await client.kv.put(`${leasePrefix}watched/key`, `value ${at}`);
      expect((await leases.inspect('nightly'))?.fencingToken).toBe(token);
    }
    while (seen.length < put.length) await soon(20);
    expect(seen).toEqual(put);
    const releasedAtMs = performance.now();
    await hold.release();
    await using next = await waiting;
    // The waiter polls only every 15 s: its watch has told it.
    expect(performance.now() - releasedAtMs).toBeLessThan(10_000);
    expect(next.fencingToken).toBeGreaterThan(token);
    stop.abort();
    await watching;
  });
});
