import { describe, expect, test } from 'vitest';
import { StateMachine, type Command, type CommandResponse } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { noChance } from '../random/testing/no-chance.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import { LeadershipDriver, type DrivenReplica } from './leadership-driver.ts';
import { Leadership } from './leadership.ts';

const overloaded = new ProposalError('overloaded', 'too many requests wait for the log');

/** A driver over a replica that appends at once. The test may hold up a claim, and may make the log refuse. */
class DrivenServer {
  readonly clock = new VirtualClock();
  readonly state = new StateMachine();
  readonly proposed: Command[] = [];
  readonly stepDowns: number[] = [];
  readonly changes: boolean[] = [];
  readonly failures: Error[] = [];
  readonly driver: LeadershipDriver;
  readonly #leadership: Leadership;
  /** The claim comes back when this has resolved. */
  claimReturns: Promise<void> = Promise.resolve();
  refusal: Error | undefined;

  constructor() {
    const { clock, state } = this;
    this.#leadership = new Leadership({
      clock,
      random: noChance,
      state,
      isShared: true,
      metrics: { leaseExpired: () => {}, leaseRenewed: () => {} },
      memberId: 1n,
      leaderId: 'one',
      heartbeatIntervalMs: 200,
      electionTimeoutMs: 1_000,
      leaderLeaseMs: 800,
    });
    this.driver = new LeadershipDriver({
      leadership: this.#leadership,
      clock,
      replica: this.#replica(),
      onChange: (leads) => void this.changes.push(leads),
      onFailed: (error) => void this.failures.push(error),
    });
  }

  static async lead(): Promise<DrivenServer> {
    const server = new DrivenServer();
    await server.driver.claimNow();
    return server;
  }

  append(command: Command): CommandResponse {
    const { state, driver, clock } = this;
    const isClaim = command.kind === 'claim';
    const permit = isClaim ? undefined : this.#leadership.beginAppend();
    if (permit !== undefined) driver.tell({ kind: 'appended', permit });
    else if (!isClaim) throw new ProposalError('deposed', 'nothing may be appended any more');
    const { epoch } = isClaim ? command : state;
    const timeMs = permit?.timeMs ?? state.clusterTimeMs;
    const entry = { index: state.appliedIndex + 1, epoch, timeMs, commands: [command] };
    const applied = state.apply(entry);
    driver.tell({ kind: 'applied', entry, applied, beganMs: clock.monotonicMs(), leads: true });
    return applied.responses[0] as CommandResponse;
  }

  #replica(): DrivenReplica {
    return {
      claim: async (claim) => {
        await this.claimReturns;
        this.append({ kind: 'claim', epoch: this.state.epoch + 1, ...claim });
        return 'leads';
      },
      barrier: async () => void this.append({ kind: 'heartbeat' }),
      proposeHere: async (command) => {
        this.proposed.push(command);
        if (this.refusal !== undefined) throw this.refusal;
        return this.append(command);
      },
      state: this.state,
      leaseSettled: () => undefined,
      revisionSettled: () => undefined,
      authSettled: () => undefined,
      stepDown: (epoch) => {
        this.stepDowns.push(epoch);
        this.driver.tell({ kind: 'deposed' });
      },
    };
  }
}

/** A server that leads, with a renewal that waits for the log: its lease is checkpointed. */
async function withWaitingRenewal() {
  const server = await DrivenServer.lead();
  server.append({ kind: 'leaseGrant', id: 7n, ttlMs: 3_000, label: '' });
  await server.clock.advance(2_100);
  const renewal = Promise.resolve(server.driver.renew(7n, undefined)).catch((error: unknown) => error);
  return { server, renewal };
}

describe('a leader that resigns', () => {
  test.each([undefined, overloaded])('steps down when the log has answered with %s', async (refusal) => {
    const server = await DrivenServer.lead();
    server.refusal = refusal;
    expect(await server.driver.resign(2n).catch((error: unknown) => error)).toBe(refusal);
    expect(server.proposed).toEqual([{ kind: 'resign', target: 2n }]);
    expect(server.stepDowns).toEqual([1]);
    expect(server.changes).toEqual([true, false]);
    expect(server.driver.renew(7n, undefined)).toBeUndefined();
  });

  test('when its server leaves, names the successor, and without one goes on to append', async () => {
    const [handing, staying] = [await DrivenServer.lead(), await DrivenServer.lead()];
    await handing.driver.leave(2n);
    staying.append({ kind: 'leaseGrant', id: 7n, ttlMs: 1_000, label: '' });
    await staying.driver.leave(undefined);
    expect([handing.proposed, handing.stepDowns]).toEqual([[{ kind: 'resign', target: 2n }], [1]]);
    const { appliedIndex } = staying.state;
    await staying.clock.advance(3_000);
    expect([staying.proposed, staying.stepDowns]).toEqual([[], []]);
    expect(staying.state.appliedIndex).toBeGreaterThan(appliedIndex + 10);
    expect([staying.driver.renew(7n, undefined), staying.state.leaseCount]).toEqual([undefined, 1]);
  });
});

test('a server that leaves while its claim is out steps down when the claim has come back', async () => {
  const server = new DrivenServer();
  let comesBack = (): void => {};
  server.claimReturns = new Promise((resolve) => (comesBack = resolve));
  const claimed = server.driver.claimNow();
  await server.driver.leave(2n);
  comesBack();
  await claimed;
  expect(server.stepDowns).toEqual([1]);
  expect(server.changes).toEqual([false]);
});

test('a server whose snapshot names it as the successor claims', async () => {
  const server = new DrivenServer();
  const claim: Command = { kind: 'claim', epoch: 1, leader: 'another', leaderLeaseMs: 800 };
  for (const [at, command] of [claim, { kind: 'resign', target: 1n } as const].entries()) {
    server.state.apply({ index: at + 1, epoch: 1, timeMs: 0, commands: [command] });
  }
  server.driver.tell({ kind: 'loaded', position: { index: 2, hash: '' } });
  await server.clock.advance(10);
  expect([server.changes, server.state.epoch]).toEqual([[true], 2]);
});

describe('a renewal that waits for the log', () => {
  test('is answered when the lead is handed on, when the server leaves, and when it stops', async () => {
    const ends: readonly ((driver: LeadershipDriver) => unknown)[] = [
      (driver) => driver.resign(2n),
      (driver) => driver.leave(undefined),
      (driver) => driver.stop(new Error('the server is stopping')),
    ];
    for (const end of ends) {
      const { server, renewal } = await withWaitingRenewal();
      end(server.driver);
      await server.clock.advance(10);
      expect(await Promise.race([renewal, Promise.resolve('no answer')])).toBeInstanceOf(Error);
    }
  });

  test('is refused with the refusal of the log', async () => {
    const { server, renewal } = await withWaitingRenewal();
    server.refusal = overloaded;
    await server.clock.advance(10);
    expect(await Promise.race([renewal, Promise.resolve('no answer')])).toBe(overloaded);
  });
});

test('a driver that has stopped leaves no timer', async () => {
  const server = await DrivenServer.lead();
  server.driver.stop(new Error('the server is stopping'));
  expect(server.clock.timers).toBe(0);
});

test('an error of its own parts stops the server, and is not thrown at the replica', () => {
  const server = new DrivenServer();
  const broken = new Error('the state cannot be read');
  Object.defineProperty(server.state, 'successor', {
    get: () => {
      throw broken;
    },
  });
  server.driver.tell({ kind: 'loaded', position: { index: 1, hash: 'a' } });
  expect(server.failures).toEqual([broken]);
});
