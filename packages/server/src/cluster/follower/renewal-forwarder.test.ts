import { describe, expect, test } from 'vitest';
import { ProposalError } from '../../replica/proposal-error.ts';
import { RenewalForwarder } from './renewal-forwarder.ts';

function createForwarder(): { forwarder: RenewalForwarder; asked: bigint[] } {
  const asked: bigint[] = [];
  const forwarder = new RenewalForwarder({ renewHere: () => undefined, revision: () => 1 });
  forwarder.linked({ renew: (id) => asked.push(id) });
  return { forwarder, asked };
}

describe('renewals on a follower', () => {
  test('do not share the answer to a question sent before they arrived', async () => {
    const { forwarder, asked } = createForwarder();
    const first = forwarder.renew(7n);
    const later = [forwarder.renew(7n), forwarder.renew(7n)];
    expect(asked).toEqual([7n]);
    forwarder.renewed(7n, 0, 1);
    expect(await first).toBe(0);
    // The two renewals that arrived meanwhile share one question, sent after both.
    expect(asked).toEqual([7n, 7n]);
    forwarder.renewed(7n, 5_000, 1);
    expect(await Promise.all(later.map(async (each) => each))).toEqual([5_000, 5_000]);
    expect(asked).toHaveLength(2);
  });

  test('that the leader refuses fail, and later ones are still sent', async () => {
    const { forwarder, asked } = createForwarder();
    const first = forwarder.renew(7n);
    const later = forwarder.renew(7n);
    forwarder.refused(7n);
    await expect(first).rejects.toMatchObject({ code: 'overloaded' });
    expect(asked).toEqual([7n, 7n]);
    forwarder.renewed(7n, 5_000, 1);
    expect(await later).toBe(5_000);
    forwarder.refused(7n);
    forwarder.refused(8n);
  });

  test('are all sent to the next leader when the link to the last one closes', async () => {
    const { forwarder } = createForwarder();
    const renewals = [forwarder.renew(7n), forwarder.renew(7n), forwarder.renew(8n)];
    forwarder.linked(undefined);
    const asked: bigint[] = [];
    forwarder.linked({ renew: (id) => asked.push(id) });
    expect(asked).toEqual([7n, 8n]);
    forwarder.renewed(7n, 5_000, 1);
    forwarder.renewed(8n, 6_000, 1);
    expect(await Promise.all(renewals.map(async (each) => each))).toEqual([5_000, 5_000, 6_000]);
  });
});

describe('renewals on a server that reaches no leader', () => {
  test('fail when that has lasted too long, and so do later ones until there is a leader', async () => {
    const { forwarder, asked } = createForwarder();
    const waiting = forwarder.renew(7n);
    // The link to the leader is open: the leader will answer.
    forwarder.lost();
    forwarder.renewed(7n, 5_000, 1);
    expect(await waiting).toBe(5_000);

    forwarder.linked(undefined);
    const unanswered = [forwarder.renew(7n), forwarder.renew(7n), forwarder.renew(8n)];
    forwarder.lost();
    for (const each of unanswered) await expect(each).rejects.toMatchObject({ code: 'noLeader' });
    await expect(forwarder.renew(9n)).rejects.toMatchObject({ code: 'noLeader' });

    forwarder.linked({ renew: (id) => asked.push(id) });
    const again = forwarder.renew(8n);
    forwarder.renewed(8n, 6_000, 1);
    expect(await again).toBe(6_000);
    expect(asked).toEqual([7n, 8n]);
  });

  test('wait again after the server stopped leading', async () => {
    let leads = false;
    const forwarder = new RenewalForwarder({ renewHere: () => (leads ? 4_000 : undefined), revision: () => 1 });
    forwarder.lost();
    await expect(forwarder.renew(7n)).rejects.toMatchObject({ code: 'noLeader' });
    leads = true;
    forwarder.leads();
    expect(await forwarder.renew(7n)).toBe(4_000);
    leads = false;
    const waiting = forwarder.renew(7n);
    forwarder.linked({ renew: (id) => forwarder.renewed(id, 3_000, 1) });
    expect(await waiting).toBe(3_000);
  });
});

describe('a renewal on the leader', () => {
  test('that its overloaded log rejects is refused: no other server would ever answer it', async () => {
    const forwarder = new RenewalForwarder({
      renewHere: () => Promise.reject(new ProposalError('overloaded', 'too many requests wait for the log')),
      revision: () => 1,
    });
    await expect(forwarder.renew(7n)).rejects.toThrow('too many requests wait for the log');
  });
});
