import { describe, expect, test } from 'vitest';
import { ProposalError } from '../../replica/proposal-error.ts';
import { LeaderOnlyCalls } from './leader-only-calls.ts';
import { systemClock } from '../../time/system-clock.ts';

const path = '/etcdserverpb.Lease/LeaseTimeToLive';
const [asked, reply] = [Buffer.from('asked'), Buffer.from('reply')];
const neverHere = (): never => {
  throw new Error('it was answered here');
};

/** A server whose leader answers when the test lets it. */
function follower(timeoutMs = 20_000) {
  const calls: { resolve: (reply: Buffer) => void; reject: (error: Error) => void }[] = [];
  const leaderCalls = new LeaderOnlyCalls({
    replica: { leading: false, barrier: () => Promise.reject(new Error('it does not lead')) },
    connection: () => ({ call: () => new Promise((resolve, reject) => calls.push({ resolve, reject })) }),
    problem: () => 'there is no leader',
    clock: systemClock,
    timeoutMs,
  });
  return { leaderCalls, calls };
}

describe('a call that only the leader can answer', () => {
  test('is answered behind a barrier by the server that leads', async () => {
    const done: string[] = [];
    const leaderCalls = new LeaderOnlyCalls({
      replica: { leading: true, barrier: async () => void done.push('barrier') },
      connection: neverHere,
      problem: () => undefined,
      clock: systemClock,
      timeoutMs: 1_000,
    });
    expect(await leaderCalls.answer({ path, request: asked, by: undefined }, () => (done.push('local'), reply))).toBe(
      reply,
    );
    expect(done).toEqual(['barrier', 'local']);
  });

  test('is retried during a change of leader, and times out with the known reason', async () => {
    const { leaderCalls, calls } = follower();
    const answer = leaderCalls.answer({ path, request: asked, by: undefined }, neverHere);
    calls[0]?.reject(new ProposalError('deposed', 'the stream to the leader ended'));
    while (calls.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    calls[1]?.resolve(reply);
    expect(await answer).toBe(reply);

    const late = follower(0);
    const unanswered = late.leaderCalls.answer({ path, request: asked, by: undefined }, neverHere);
    late.calls[0]?.reject(new ProposalError('deposed', 'the stream to the leader ended'));
    await expect(unanswered).rejects.toMatchObject({
      message: 'etcdserver: request timed out',
      reason: 'there is no leader',
    });
  });

  test('is refused when too many calls or too many bytes wait', async () => {
    for (const { request, fit } of [
      { request: asked, fit: 10_000 },
      { request: Buffer.alloc(1024 * 1024), fit: 64 },
    ]) {
      const { leaderCalls, calls } = follower();
      const waiting = Array.from({ length: fit }, () =>
        leaderCalls.answer({ path, request, by: undefined }, neverHere),
      );
      await expect(leaderCalls.answer({ path, request, by: undefined }, neverHere)).rejects.toMatchObject({
        code: 'overloaded',
      });
      for (const { resolve } of calls) resolve(reply);
      await Promise.all(waiting);
      const next = leaderCalls.answer({ path, request, by: undefined }, neverHere);
      calls.at(-1)?.resolve(reply);
      expect(await next).toBe(reply);
    }
  });
});
