import { type Alarm, type Command, StateMachine } from '@tenure/core';
import { expect, test } from 'vitest';
import { QuotaGuard } from './quota-guard.ts';
import { SpaceAlarmMonitor } from '../replica/space-alarm-monitor.ts';
import { VirtualClock } from '@tenure/test-support';

const quotaBytes = 100_000;
const own = 1n;
const silent = 2n;

const clock = new VirtualClock();

/** A server with the real state and the real QuotaGuard. */
class Server {
  readonly state = new StateMachine();
  readonly guard: QuotaGuard;
  readonly monitor: SpaceAlarmMonitor;
  /** The log refuses appends. */
  isAway = false;
  asked = 0;

  constructor(alarms: readonly Alarm[] = []) {
    this.#apply({ kind: 'claim', epoch: 1, leader: '', leaderLeaseMs: 0 });
    for (const alarm of alarms) this.#apply({ kind: 'alarm', action: 'activate', ...alarm });
    const propose = async (command: Command) => {
      this.asked += 1;
      if (this.isAway) throw new Error('the log takes nothing');
      return this.#apply(command);
    };
    const position = { index: 0, hash: '' };
    this.guard = new QuotaGuard({ state: this.state, position, propose, linearize: () => undefined }, quotaBytes, own);
    this.monitor = new SpaceAlarmMonitor({
      clock,
      memberId: own,
      quotaBytes,
      state: () => this.state,
      isRaisedHere: () => this.guard.hasRaised(),
      speaksFor: (id) => id === silent,
      propose,
    });
  }

  put(key: string, bytes: number): Promise<unknown> | undefined {
    const put = { key, value: 'x'.repeat(bytes), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    const full = this.guard.admit(bytes);
    if (full !== undefined) return full.catch((error: unknown) => error);
    this.#apply({ kind: 'put', put });
    return undefined;
  }

  /** Deletes keys, and frees their memory. */
  free(key: string, rangeEnd = ''): void {
    this.#apply({ kind: 'deleteRange', deleteRange: { key, rangeEnd, prevKv: false } });
    this.#apply({ kind: 'put', put: { ...noPut, key: 'last' } });
    this.#apply({ kind: 'compact', revision: this.state.currentRevision });
    while (this.state.collectGarbage(1_000));
  }

  #apply(command: Command) {
    const entry = { index: this.state.appliedIndex + 1, epoch: 1, timeMs: 0, commands: [command] };
    return this.state.apply(entry).responses[0]!;
  }
}

const noPut = { value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
const looks = (count: number): Promise<void> => clock.advance(count * 1_000);

/** A server whose quota has refused a put, and raised the alarm. */
async function full(): Promise<Server> {
  const server = new Server();
  let refused: Promise<unknown> | undefined;
  for (let key = 0; refused === undefined; key += 1) refused = server.put(`k${key}`, 4_000);
  expect(await refused).toMatchObject({ code: 8 });
  expect(server.state.alarms).toEqual([{ memberId: own, alarm: 'nospace' }]);
  return server;
}

test('the alarm raised by the quota ends when there is space, and not before', async () => {
  const server = await full();
  await looks(5);
  expect(server.state.alarms).toHaveLength(1);
  // Some space is not enough: the next writes would raise it again.
  server.free('k0');
  expect(server.state.sizeBytes).toBeLessThan(quotaBytes);
  expect(server.state.sizeBytes).toBeGreaterThan(0.9 * quotaBytes);
  await looks(5);
  expect(server.state.alarms).toHaveLength(1);
  server.free('k', 'l');
  await looks(1);
  expect(server.state.alarms).toEqual([]);
  expect(server.put('again', 4_000)).toBeUndefined();
  server.monitor.stop();
});

test('a log that refuses appends is tried again, one append at a time', async () => {
  const server = await full();
  server.free('k', 'l');
  server.isAway = true;
  const before = server.asked;
  await looks(3);
  expect(server.asked - before).toBe(3);
  expect(server.state.alarms).toHaveLength(1);
  server.isAway = false;
  await looks(1);
  expect(server.state.alarms).toEqual([]);
  server.monitor.stop();
});

test('an alarm that exists at the start ends, and one that is raised by hand later stays', async () => {
  const server = new Server([{ memberId: own, alarm: 'nospace' }]);
  await looks(1);
  expect(server.state.alarms).toEqual([]);
  const byHand = { memberId: own, alarm: 'nospace' } as const;
  server.state.apply({
    index: server.state.appliedIndex + 1,
    epoch: 1,
    timeMs: 0,
    commands: [{ kind: 'alarm', action: 'activate', ...byHand }],
  });
  expect(await server.put('k', 1)).toMatchObject({ code: 8 });
  await looks(10);
  expect(server.state.alarms).toEqual([byHand]);
  server.monitor.stop();
});

test('disarms the alarms of other members only when allowed, and never other kinds of alarm', async () => {
  const others = [
    { memberId: silent, alarm: 'nospace' },
    { memberId: 3n, alarm: 'nospace' },
    { memberId: silent, alarm: 'corrupt' },
  ] as const;
  const server = new Server(others);
  await looks(5);
  expect(server.state.alarms).toEqual([others[2], others[1]]);
  server.monitor.stop();
});
