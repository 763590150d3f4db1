import { describe, expect, test } from 'vitest';
import { ProposalError } from '../replica/proposal-error.ts';
import { LeaderCalls } from './leader-calls.ts';
import { systemClock } from '../time/system-clock.ts';

const path = '/etcdserverpb.Lease/LeaseTimeToLive';
const [asked, reply] = [Buffer.from('asked'), Buffer.from('reply')];
const nobody = (): never => {
  throw new Error('it was answered here');
};

/** A server whose leader answers when the test says so. */
function follower(timeoutMs = 20_000) {
  const calls: { resolve: (reply: Buffer) => void; reject: (error: Error) => void }[] = [];
  const leaderCalls = new LeaderCalls({
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
    const leaderCalls = new LeaderCalls({
      replica: { leading: true, barrier: async () => void done.push('barrier') },
      connection: nobody,
      problem: () => undefined,
      clock: systemClock,
      timeoutMs: 1_000,
    });
    expect(await leaderCalls.answer(path, asked, () => (done.push('local'), reply))).toBe(reply);
    expect(done).toEqual(['barrier', 'local']);
  });

  test('is asked again while the lead changes, and times out with what is known to be wrong', async () => {
    const { leaderCalls, calls } = follower();
    const answer = leaderCalls.answer(path, asked, nobody);
    calls[0]?.reject(new ProposalError('deposed', 'the stream to the leader ended'));
    while (calls.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    calls[1]?.resolve(reply);
    expect(await answer).toBe(reply);

    const late = follower(0);
    const inVain = late.leaderCalls.answer(path, asked, nobody);
    late.calls[0]?.reject(new ProposalError('deposed', 'the stream to the leader ended'));
    await expect(inVain).rejects.toMatchObject({
      message: 'etcdserver: request timed out',
      reason: 'there is no leader',
    });
  });

  test('is refused when too many wait, or too large ones', async () => {
    for (const { request, fit } of [
      { request: asked, fit: 10_000 },
      { request: Buffer.alloc(1024 * 1024), fit: 64 },
    ]) {
      const { leaderCalls, calls } = follower();
      const waiting = Array.from({ length: fit }, () => leaderCalls.answer(path, request, nobody));
      await expect(leaderCalls.answer(path, request, nobody)).rejects.toMatchObject({ code: 'overloaded' });
      for (const { resolve } of calls) resolve(reply);
      await Promise.all(waiting);
      const next = leaderCalls.answer(path, request, nobody);
      calls.at(-1)?.resolve(reply);
      expect(await next).toBe(reply);
    }
  });
});
