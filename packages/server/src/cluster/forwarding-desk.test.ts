import { describe, expect, test } from 'vitest';
import { ProposalError } from '../replica/proposal-error.ts';
import { ForwardingDesk } from './forwarding-desk.ts';

function createDesk(): { desk: ForwardingDesk; asked: bigint[] } {
  const asked: bigint[] = [];
  const desk = new ForwardingDesk({ renewHere: () => undefined, revision: () => 1 });
  desk.linked({ renew: (id) => asked.push(id) });
  return { desk, asked };
}

describe('renewals on a follower', () => {
  test('do not share the answer to a question that was asked before them', async () => {
    const { desk, asked } = createDesk();
    const first = desk.renew(7n);
    const later = [desk.renew(7n), desk.renew(7n)];
    expect(asked).toEqual([7n]);
    desk.renewed(7n, 0, 1);
    expect(await first).toBe(0);
    // The two that came while it was out share one question, asked after both.
    expect(asked).toEqual([7n, 7n]);
    desk.renewed(7n, 5_000, 1);
    expect(await Promise.all(later.map(async (each) => each))).toEqual([5_000, 5_000]);
    expect(asked).toHaveLength(2);
  });

  test('that the leader refuses fail, and those that came behind them are asked', async () => {
    const { desk, asked } = createDesk();
    const first = desk.renew(7n);
    const later = desk.renew(7n);
    desk.refused(7n);
    await expect(first).rejects.toMatchObject({ code: 'overloaded' });
    expect(asked).toEqual([7n, 7n]);
    desk.renewed(7n, 5_000, 1);
    expect(await later).toBe(5_000);
    desk.refused(7n);
    desk.refused(8n);
  });

  test('are all asked of the next leader when the way to the last one closes', async () => {
    const { desk } = createDesk();
    const renewals = [desk.renew(7n), desk.renew(7n), desk.renew(8n)];
    desk.linked(undefined);
    const asked: bigint[] = [];
    desk.linked({ renew: (id) => asked.push(id) });
    expect(asked).toEqual([7n, 8n]);
    desk.renewed(7n, 5_000, 1);
    desk.renewed(8n, 6_000, 1);
    expect(await Promise.all(renewals.map(async (each) => each))).toEqual([5_000, 5_000, 6_000]);
  });
});

describe('renewals on a server that reaches no leader', () => {
  test('are failed when that has lasted too long, and so are later ones until there is a leader', async () => {
    const { desk, asked } = createDesk();
    const waiting = desk.renew(7n);
    // The way to the leader stands: it will answer.
    desk.lost();
    desk.renewed(7n, 5_000, 1);
    expect(await waiting).toBe(5_000);

    desk.linked(undefined);
    const inVain = [desk.renew(7n), desk.renew(7n), desk.renew(8n)];
    desk.lost();
    for (const each of inVain) await expect(each).rejects.toMatchObject({ code: 'noLeader' });
    await expect(desk.renew(9n)).rejects.toMatchObject({ code: 'noLeader' });

    desk.linked({ renew: (id) => asked.push(id) });
    const again = desk.renew(8n);
    desk.renewed(8n, 6_000, 1);
    expect(await again).toBe(6_000);
    expect(asked).toEqual([7n, 8n]);
  });

  test('wait again when it stops leading after it has led', async () => {
    let leads = false;
    const desk = new ForwardingDesk({ renewHere: () => (leads ? 4_000 : undefined), revision: () => 1 });
    desk.lost();
    await expect(desk.renew(7n)).rejects.toMatchObject({ code: 'noLeader' });
    leads = true;
    desk.leads();
    expect(await desk.renew(7n)).toBe(4_000);
    leads = false;
    const waiting = desk.renew(7n);
    desk.linked({ renew: (id) => desk.renewed(id, 3_000, 1) });
    expect(await waiting).toBe(3_000);
  });
});

describe('a renewal on the leader', () => {
  test('that its log does not take is refused, since nobody else would ever answer it', async () => {
    const desk = new ForwardingDesk({
      renewHere: () => Promise.reject(new ProposalError('overloaded', 'too many requests wait for the log')),
      revision: () => 1,
    });
    await expect(desk.renew(7n)).rejects.toThrow('too many requests wait for the log');
  });
});
