import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { pause } from './conformance-lab.ts';
import type { ConformanceCase, ConformanceLab } from './conformance-lab.ts';
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
    hintCase('an entry that came', (lab, { name }) => lab.enter(lab.claim(name))),
    {
      name: 'watches of one name and of many have their hints each',
      async run(lab) {
        const names = Array.from({ length: 20 }, () => lab.name());
        const watches = names.map((name) => watchCounting(lab.backends[1], name));
        const twins = names.map((name) => watchCounting(lab.backends[1], name));
        for (const twin of twins) twin.close();
        for (const [at, watch] of watches.entries()) await untilItStands(lab, names[at] ?? '', watch);
        for (const watch of watches) watch.close();
      },
    },
  ],
  updated: [hintCase('data that changed', async (lab, key) => assert.ok(await lab.update(key, 'changed')))],
  left: [hintCase('an entry that left', async (lab, key) => assert.ok(await lab.leave(key)))],
  expired: [
    {
      name: 'a watch hints of an entry that expired',
      isWaiting: true,
      async run(lab) {
        const name = lab.name();
        const watch = watchCounting(lab.backends[1], name);
        await untilItStands(lab, name, watch);
        const endMs = performance.now() + lab.shortTtlMs;
        await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
        // Nobody looks: a hint from after its life is the one that is wanted.
        await lab.until('a hint of its end', () => watch.lastMs >= endMs);
        watch.close();
      },
    },
  ],
};

/** What every backend's watch does, whether it hints or not. */
export const watchCases: readonly ConformanceCase[] = [
  {
    name: 'watching never throws, and a watch is closed more than once',
    async run(lab) {
      const name = lab.name();
      const watches = lab.backends.map((backend) => watchCounting(backend, name));
      await lab.leave(await lab.enter(lab.claim(name)));
      for (const watch of [...watches, ...watches]) watch.close();
      const late = await lab.open();
      late.watch(name, () => undefined).close();
    },
  },
];

/** Needs a way to break connections, and hints of what came. */
export const brokenWatchCases: readonly ConformanceCase[] = [
  {
    name: 'a watch hints again after its connection broke (etcd3 #78, #31, #114, #197)',
    async run(lab) {
      const name = lab.name();
      const watch = watchCounting(lab.backends[1], name);
      await untilItStands(lab, name, watch);
      for (let round = 0; round < 2; round++) {
        await pause(quietMs);
        const before = watch.hints;
        await lab.store.killConnections?.();
        await lab.until('it hints once when it stands again', () => watch.hints > before);
        await untilItStands(lab, name, watch);
      }
      watch.close();
    },
  },
];

/** `act` goes through another backend than the one that watches. */
function hintCase(what: string, act: (lab: ConformanceLab, key: EntryKey) => Promise<unknown>): ConformanceCase {
  return {
    name: `a watch hints of ${what} through another backend`,
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const watch = watchCounting(lab.backends[1], name);
      await untilItStands(lab, name, watch);
      const key = await lab.enter(lab.claim(name));
      await lab.until('hints of what came before are in', () => performance.now() - watch.lastMs > quietMs);
      const seen = watch.hints;
      await act(lab, key);
      await lab.until(`a hint of ${what}`, () => watch.hints > seen);
      watch.close();
    },
  };
}

/** A watch may begin late, and only a change after that must be told: changes the line until it is told of one. */
async function untilItStands(lab: ConformanceLab, name: string, watch: CountingWatch): Promise<void> {
  const before = watch.hints;
  await lab.until('the watch stands', async () => {
    try {
      await lab.leave(await lab.enter(lab.claim(name)));
    } catch {
      // Connections may just have been broken; the next turn tells.
    }
    return watch.hints > before;
  });
}
