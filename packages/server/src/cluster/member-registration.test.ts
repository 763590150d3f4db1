import { StateMachine, type Command } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { statusNamed } from '../api/status-of.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import { MemberRegistration } from './member-registration.ts';

function registration(
  outcomes: (() => Promise<never> | undefined)[],
  clock = new VirtualClock(),
  peerUrls: readonly string[] = [],
) {
  const proposed: Command[] = [];
  const state = new StateMachine();
  const warnings: string[] = [];
  const member = new MemberRegistration({
    clock,
    replica: {
      state,
      leading: false,
      propose: async (command) => {
        proposed.push(command);
        await outcomes.shift()?.();
        state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [command] });
        return { kind: 'ok', revision: 1 };
      },
    },
    memberId: 7n,
    name: 'seven',
    clientUrls: () => ['http://10.0.0.7:2379'],
    peerUrls: () => peerUrls,
    warn: (message) => warnings.push(message),
    onFailed: () => {},
  });
  return { clock, proposed, member, state, warnings };
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

const peerUrls = ['http://10.0.0.7:2380'];
const tooEarly = (): Promise<never> => Promise.reject(statusNamed('NotCapable'));
const unknown = (): Promise<never> => Promise.reject(new ProposalError('stopped', 'the leader does not take this'));

test('a server registers its peer URLs at once where every server knows them', async () => {
  const { clock, proposed, member, state, warnings } = registration([], new VirtualClock(), peerUrls);
  await clock.run(member.register(), 100);
  expect(proposed).toHaveLength(1);
  expect(state.members).toMatchObject([{ id: 7n, peerUrls }]);
  expect([clock.timers, warnings]).toEqual([0, []]);
});

test.each([
  ['that knows them', tooEarly],
  ['of an earlier version', unknown],
])(
  'after a refusal by a leader %s, a server starts without peer URLs, and registers them later',
  async (_, refusal) => {
    const nothing = (): undefined => undefined;
    const outcomes = [refusal, nothing, refusal, refused('skipped'), refusal, nothing];
    const { clock, proposed, member, state, warnings } = registration(outcomes, new VirtualClock(), peerUrls);
    await clock.run(member.register(), 100);
    expect(state.members).toStrictEqual([{ id: 7n, name: 'seven', clientUrls: ['http://10.0.0.7:2379'] }]);
    expect(warnings).toEqual([expect.stringContaining('not registered yet')]);
    await clock.advance(10_000);
    expect(state.members).toMatchObject([{ id: 7n, peerUrls }]);
    expect(proposed.map((each) => each.kind === 'registerMember' && each.peerUrls?.length)).toEqual([1, 0, 1, 1, 1, 1]);
    expect([clock.timers, warnings.length]).toEqual([0, 1]);
  },
);

test('a server that is removed while it waits to register its peer URLs does not list itself again', async () => {
  const { clock, proposed, member, state } = registration([tooEarly], new VirtualClock(), peerUrls);
  await clock.run(member.register(), 100);
  state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [{ kind: 'removeMember', id: 7n }] });
  await clock.advance(10_000);
  expect(state.members).toEqual([]);
  expect([clock.timers, proposed.length]).toEqual([0, 2]);
});

test('a server that stops asks no more whether its peer URLs may be registered', async () => {
  const { clock, proposed, member } = registration([tooEarly], new VirtualClock(), peerUrls);
  await clock.run(member.register(), 100);
  member.stop();
  await clock.advance(10_000);
  expect([clock.timers, proposed.length]).toEqual([0, 2]);
});

test('a server that has no port for servers any more takes its peer URLs out of the log', async () => {
  const { clock, member, state } = registration([]);
  const before: Command = {
    kind: 'registerMember',
    id: 7n,
    name: 'seven',
    clientUrls: ['http://10.0.0.7:2379'],
    peerUrls,
  };
  state.apply({ index: 1, epoch: 0, timeMs: 0, commands: [before] });
  await clock.run(member.register(), 100);
  expect(state.members).toStrictEqual([{ id: 7n, name: 'seven', clientUrls: ['http://10.0.0.7:2379'] }]);
});
