import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { pause } from './conformance-fixture.ts';
import type { ConformanceCase, ConformanceFixture } from './conformance-fixture.ts';
import type { Hint } from './conformance-store.ts';

/** Hints of what was done before have come when there was none for so long. */
const quietMs = 250;

interface CountingWatch {
  hints: number;
  lastMs: number;
  close(): void;
}

function watchCounting(backend: LeaseBackend, name: string): CountingWatch {
  const counted = { hints: 0, lastMs: -Infinity, close: (): void => undefined };
  const watch = backend.watch(name, () => {
    counted.hints += 1;
    counted.lastMs = performance.now();
  });
  counted.close = () => watch.close();
  return counted;
}

export const hintCases: Readonly<Record<Hint, readonly ConformanceCase[]>> = {
  came: [
    hintCase('an entry that came', (fixture, { name }) => fixture.enter(fixture.claim(name))),
    {
      name: 'watches of one name and of many have their hints each',
      async run(fixture) {
        const names = Array.from({ length: 20 }, () => fixture.name());
        const watches = names.map((name) => watchCounting(fixture.backends[1], name));
        const twins = names.map((name) => watchCounting(fixture.backends[1], name));
        for (const twin of twins) twin.close();
        for (const [at, watch] of watches.entries()) await untilItStands(fixture, names[at] ?? '', watch);
        for (const watch of watches) watch.close();
      },
    },
  ],
  updated: [hintCase('data that changed', async (fixture, key) => assert.ok(await fixture.update(key, 'changed')))],
  left: [hintCase('an entry that left', async (fixture, key) => assert.ok(await fixture.leave(key)))],
  expired: [
    {
      name: 'a watch hints of an entry that expired',
      isWaiting: true,
      async run(fixture) {
        const name = fixture.name();
        const watch = watchCounting(fixture.backends[1], name);
        await untilItStands(fixture, name, watch);
        const endMs = performance.now() + fixture.shortTtlMs;
        await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
        // Nothing reads the queue meanwhile. Only a hint after the expiry counts.
        await fixture.until('a hint of its end', () => watch.lastMs >= endMs);
        watch.close();
      },
    },
  ],
};

/** What every backend's watch does, whether it hints or not. */
export const watchCases: readonly ConformanceCase[] = [
  {
    name: 'watching never throws, and a watch is closed more than once',
    async run(fixture) {
      const name = fixture.name();
      const watches = fixture.backends.map((backend) => watchCounting(backend, name));
      await fixture.leave(await fixture.enter(fixture.claim(name)));
      for (const watch of [...watches, ...watches]) watch.close();
      const late = await fixture.open();
      late.watch(name, () => undefined).close();
    },
  },
];

/** Needs a way to break connections, and hints of what came. */
export const brokenWatchCases: readonly ConformanceCase[] = [
  {
    name: 'a watch hints again after its connection broke (etcd3 #78, #31, #114, #197)',
    async run(fixture) {
      const name = fixture.name();
      const watch = watchCounting(fixture.backends[1], name);
      await untilItStands(fixture, name, watch);
      for (let round = 0; round < 2; round++) {
        await pause(quietMs);
        const before = watch.hints;
        await fixture.store.killConnections?.();
        await fixture.until('it hints once when it stands again', () => watch.hints > before);
        await untilItStands(fixture, name, watch);
      }
      watch.close();
    },
  },
];

/** `act` goes through another backend than the one that watches. */
function hintCase(
  what: string,
  act: (fixture: ConformanceFixture, key: EntryKey) => Promise<unknown>,
): ConformanceCase {
  return {
    name: `a watch hints of ${what} through another backend`,
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const watch = watchCounting(fixture.backends[1], name);
      await untilItStands(fixture, name, watch);
      const key = await fixture.enter(fixture.claim(name));
      await fixture.until('hints of what came before are in', () => performance.now() - watch.lastMs > quietMs);
      const seen = watch.hints;
      await act(fixture, key);
      await fixture.until(`a hint of ${what}`, () => watch.hints > seen);
      watch.close();
    },
  };
}

/** A watch may be established late and hints only of later changes, so this changes the queue until a hint comes. */
async function untilItStands(fixture: ConformanceFixture, name: string, watch: CountingWatch): Promise<void> {
  const before = watch.hints;
  await fixture.until('the watch stands', async () => {
    try {
      await fixture.leave(await fixture.enter(fixture.claim(name)));
    } catch {
      // Connections may just have been broken; the next turn tells.
    }
    return watch.hints > before;
  });
}
