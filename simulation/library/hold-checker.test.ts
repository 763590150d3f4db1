import { Schedule } from '@tenure/test-support';
import { expect, test } from 'vitest';
import type { EntryMode } from '../../packages/client/src/backend/lease-backend.ts';
import { Coverage } from '../world/coverage.ts';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { HoldChecker, type CheckedHold } from './hold-checker.ts';
import { LibraryProcess } from './library-process.ts';

const ttlMs = 1_000;

/** A hold as the test says it is. */
class StatedHold implements CheckedHold {
  readonly name = 'job';
  readonly ttlMs = ttlMs;
  readonly entry;
  readonly fencingToken;
  saysHeld = true;
  readonly #ending = new AbortController();

  constructor(token: bigint) {
    this.fencingToken = token;
    this.entry = { name: 'lease/job', id: `entry ${token}`, sequence: token };
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  isHeld(): boolean {
    return this.saysHeld;
  }

  abort(): void {
    this.#ending.abort();
  }
}

class World {
  readonly schedule = new Schedule();
  readonly entries = new Set<string>();
  readonly violations = new Violations(this.schedule, new Trace(this.schedule));
  readonly checker = new HoldChecker({
    schedule: this.schedule,
    truth: { has: ({ id }) => this.entries.has(id) },
    coverage: new Coverage(),
    violations: this.violations,
  });

  process(name: string): LibraryProcess {
    const { schedule } = this;
    return new LibraryProcess(name, { schedule, monotonicRate: 1, wallRate: 1, wallIgnored: false });
  }

  /** Enters now and is granted at once. */
  grant(process: LibraryProcess, token: bigint, mode: EntryMode = 'exclusive'): StatedHold {
    const hold = new StatedHold(token);
    this.entries.add(hold.entry.id);
    this.checker.entered(hold.entry.id, this.schedule.nowMs);
    this.checker.granted({ hold, process, mode, permits: mode === 'permit' ? 2 : 1 });
    return hold;
  }

  async violationsAt(ms: number): Promise<readonly string[]> {
    await this.schedule.runUntil(ms);
    return this.violations.all.map((violation) => violation.replace(/ at \d+ ms.*/, ''));
  }
}

test('holds one after the other, each renewed and ended in time, violate nothing', async () => {
  const world = new World();
  const { schedule, checker } = world;
  const one = world.process('one');
  const first = world.grant(one, 1n);
  schedule.at(400, () => checker.renewed(first.entry.id, 390));
  schedule.at(1_300, () => first.abort());
  schedule.at(1_300, () => checker.lossTold(first, 'one'));
  schedule.at(1_400, () => {
    const second = world.grant(world.process('two'), 2n);
    schedule.at(1_500, () => {
      checker.releasing(second.entry.id);
      world.entries.delete(second.entry.id);
      checker.released(second.entry, 'two');
    });
    schedule.at(1_501, () => world.grant(one, 3n).abort());
  });
  expect(await world.violationsAt(5_000)).toEqual([]);
});

test('K1: two holds at once, unless both only read or there are permits for both', async () => {
  const world = new World();
  world.grant(world.process('one'), 1n, 'shared').abort();
  world.grant(world.process('one'), 2n, 'permit');
  world.schedule.at(10, () => world.grant(world.process('two'), 3n, 'permit'));
  expect(await world.violationsAt(20)).toEqual([]);
  world.grant(world.process('three'), 4n, 'permit');
  expect(await world.violationsAt(30)).toEqual(['K1']);
  const other = new World();
  other.grant(other.process('one'), 1n);
  other.schedule.at(10, () => other.grant(other.process('two'), 2n));
  expect(await other.violationsAt(20)).toEqual(['K1']);
});

test('K1: a token that is not above all tokens before it', async () => {
  for (const next of [4n, 5n]) {
    const world = new World();
    world.grant(world.process('one'), 5n).abort();
    world.grant(world.process('two'), next).abort();
    expect(await world.violationsAt(10)).toEqual(['K1']);
  }
});

test('K3: a hold without an entry, and a release that leaves it', async () => {
  const world = new World();
  const hold = new StatedHold(1n);
  world.checker.entered(hold.entry.id, 0);
  world.checker.granted({ hold, process: world.process('one'), mode: 'exclusive', permits: 1 });
  hold.abort();
  expect(await world.violationsAt(10)).toEqual(['K3']);
  world.entries.add(hold.entry.id);
  world.checker.released(hold.entry, 'one');
  expect(await world.violationsAt(20)).toEqual(['K3', 'K3']);
});

test('K4: a signal that aborts after the deadline, counted from the sending of the last renewal', async () => {
  const world = new World();
  const hold = world.grant(world.process('one'), 1n);
  world.schedule.at(300, () => world.checker.renewed(hold.entry.id, 200));
  world.schedule.at(1_160, () => hold.abort());
  expect(await world.violationsAt(1_149)).toEqual([]);
  expect(await world.violationsAt(1_151)).toEqual(['K4']);
});

test('K4: a hold that a renewal revives after its deadline', async () => {
  const world = new World();
  const one = world.process('one');
  const hold = world.grant(one, 1n);
  world.schedule.at(500, () => one.suspend());
  world.schedule.at(1_100, () => one.resume());
  world.schedule.at(1_100, () => world.checker.renewed(hold.entry.id, 499));
  expect(await world.violationsAt(1_200)).toEqual(['K4']);
});

test('K4: a stopped process is judged when it runs again, and after a suspension by what its hold says', async () => {
  for (const kind of ['pause', 'suspend'] as const) {
    for (const isNoticed of [true, false]) {
      const world = new World();
      const { schedule, checker } = world;
      const one = world.process('one');
      const hold = world.grant(one, 1n);
      schedule.at(500, () => (kind === 'pause' ? one.node.pause() : one.suspend()));
      schedule.at(1_500, () => {
        one.resume();
        checker.resumed(one);
        hold.saysHeld = !isNoticed;
        if (kind === 'pause' && isNoticed) hold.abort();
      });
      expect(await world.violationsAt(1_499)).toEqual([]);
      expect(await world.violationsAt(1_600)).toEqual(isNoticed ? [] : ['K4']);
    }
  }
});

test('order: a listener that is told of a loss before the signal aborts', async () => {
  const world = new World();
  const hold = world.grant(world.process('one'), 1n);
  world.checker.lossTold(hold, 'one');
  expect(await world.violationsAt(0)).toEqual(['order']);
});
