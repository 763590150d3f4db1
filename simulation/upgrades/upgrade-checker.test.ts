import { Schedule } from '@tenure/test-support';
import { defaultTxnLimits, type Command } from '@tenure/core';
import { describe, expect, test } from 'vitest';
import { logStart, nextPosition } from '../../packages/server/src/engines/chain-hash.ts';
import { encodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { ruleOf } from '../failure.ts';
import { Coverage } from '../world/coverage.ts';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { UpgradeChecker } from './upgrade-checker.ts';

const setLimits: Command = { kind: 'setTxnLimits', limits: defaultTxnLimits };
const claim: Command = { kind: 'claim', epoch: 1, leader: 'a leader', leaderLeaseMs: 800 };

/** A log and the servers that are older. */
class Case {
  readonly older = new Set<string>();
  readonly coverage = new Coverage();
  readonly #violations: Violations;
  readonly #checker: UpgradeChecker;
  #position = logStart;

  constructor(...older: readonly string[]) {
    for (const name of older) this.older.add(name);
    const schedule = new Schedule();
    this.#violations = new Violations(schedule, new Trace(schedule));
    this.#checker = new UpgradeChecker({
      violations: this.#violations,
      coverage: this.coverage,
      olderServers: () => [...this.older],
    });
  }

  append(command: Command, isByOlder: boolean): void {
    const heartbeat = encodeCommand({ kind: 'heartbeat' });
    const bytes = encodeEntry({ epoch: 1, timeMs: 0 }, [encodeCommand(command), heartbeat]);
    this.#position = nextPosition(this.#position, bytes);
    this.#checker.committed({ position: this.#position, bytes }, isByOlder);
  }

  finish(): readonly string[] {
    this.#checker.finish();
    return this.#violations.all.map(ruleOf);
  }
}

describe('an upgrade', () => {
  test('that uses the newest command after the last older server is gone violates nothing', () => {
    const one = new Case('server-1', 'server-2');
    one.append(claim, true);
    one.older.delete('server-1');
    one.append(claim, false);
    one.append(claim, true);
    one.older.delete('server-2');
    one.append(setLimits, false);
    one.append(setLimits, false);
    expect(one.finish()).toEqual([]);
    expect(one.coverage.totals).toEqual({
      'upgrade: a newer command is in use': 1,
      'upgrade: a newer leader followed an older one': 1,
      'upgrade: an older leader followed a newer one': 1,
    });
  });

  test('that ends before the last server needs no new command', () => {
    const one = new Case('server-1', 'server-2');
    one.older.delete('server-1');
    one.append(claim, false);
    expect(one.finish()).toEqual([]);
  });

  test('that uses the newest command while a server is older violates U1', () => {
    const one = new Case('server-1');
    one.append(setLimits, false);
    one.older.delete('server-1');
    expect(one.finish()).toEqual(['U1']);
  });

  test('after which the newest command is not used violates U2', () => {
    const one = new Case('server-1');
    one.older.delete('server-1');
    one.append(claim, false);
    expect(one.finish()).toEqual(['U2']);
  });
});
