import { StateMachine, type Command } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { ProposalError } from '../replica/proposal-error.ts';
import { MemberRegistration } from './member-registration.ts';

function registration(outcomes: (() => Promise<never> | undefined)[], clock = new VirtualClock()) {
  const proposed: Command[] = [];
  const state = new StateMachine();
  const member = new MemberRegistration({
    clock,
    replica: {
      state,
      leading: false,
      propose: async (command) => {
        proposed.push(command);
        await outcomes.shift()?.();
        return { kind: 'ok', revision: 1 };
      },
    },
    memberId: 7n,
    name: 'seven',
    clientUrls: () => ['http://10.0.0.7:2379'],
    onFailed: () => {},
  });
  return { clock, proposed, member, state };
}

const refused = (code: 'overloaded' | 'skipped') => (): Promise<never> =>
  Promise.reject(new ProposalError(code, 'refused'));

test('a server that an overloaded leader refuses registers when the overload has passed', async () => {
  const { clock, proposed, member } = registration([refused('overloaded'), refused('overloaded')]);
  await clock.run(member.register(), 5_000);
  expect(proposed).toHaveLength(3);
  expect(clock.timers).toBe(0);
});

test('after an outcome in a part of the log that was skipped, however late, the server registers again', async () => {
  const clock = new VirtualClock();
  const late = (): Promise<never> =>
    new Promise((_resolve, reject) => clock.after(6_900, () => void refused('skipped')().catch(reject)));
  const { proposed, member } = registration([late, refused('skipped')], clock);
  await clock.run(member.register(), 10_000);
  expect(proposed).toHaveLength(3);
});

test('a registration that is in the part of the log that was skipped is not made twice', async () => {
  const outcomes: (() => Promise<never>)[] = [];
  const { clock, proposed, member, state } = registration(outcomes);
  outcomes.push(() => {
    state.apply({ index: 1, epoch: 0, timeMs: 0, commands: [...proposed] });
    return refused('skipped')();
  });
  await clock.run(member.register(), 5_000);
  expect(proposed).toHaveLength(1);
});

test('a log that outruns the server for a minute ends the start', async () => {
  const { clock, member } = registration(Array.from({ length: 1_000 }, () => refused('skipped')));
  await expect(clock.run(member.register(), 61_000)).rejects.toMatchObject({ code: 'skipped' });
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000);
});

test('without a leader for as long as a request may take, the registration fails', async () => {
  const clock = new VirtualClock();
  const late = (): Promise<never> =>
    new Promise((_resolve, reject) => clock.after(7_000, () => reject(new ProposalError('timeout', 'no outcome'))));
  const { proposed, member } = registration([late], clock);
  await expect(clock.run(member.register(), 10_000)).rejects.toMatchObject({ code: 'timeout' });
  expect(proposed).toHaveLength(1);
});

test('a leader that stays overloaded for a minute ends the start', async () => {
  const { clock, member } = registration(Array.from({ length: 1_000 }, () => refused('overloaded')));
  await expect(clock.run(member.register(), 61_000)).rejects.toMatchObject({ code: 'overloaded' });
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000);
});
