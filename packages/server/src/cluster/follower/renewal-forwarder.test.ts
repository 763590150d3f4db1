import { describe, expect, test } from 'vitest';
import { AccessError } from '../../replica/access-error.ts';
import { ProposalError } from '../../replica/proposal-error.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { type AskedRenewal, RenewalForwarder } from './renewal-forwarder.ts';

const overloaded = new ProposalError('overloaded', 'too many requests wait for the log of the leader');

function createForwarder(): { forwarder: RenewalForwarder; asked: bigint[] } {
  const asked: bigint[] = [];
  const forwarder = new RenewalForwarder({ renewHere: () => undefined, revision: () => 1 });
  forwarder.linked({ renew: ({ id }) => asked.push(id) });
  return { forwarder, asked };
}

describe('renewals on a follower', () => {
  test('do not share the answer to a question sent before they arrived', async () => {
    const { forwarder, asked } = createForwarder();
    const first = forwarder.renew(7n, undefined);
    const later = [forwarder.renew(7n, undefined), forwarder.renew(7n, undefined)];
    expect(asked).toEqual([7n]);
    forwarder.renewed({ id: 7n, by: undefined }, 0, 1);
    expect(await first).toBe(0);
    // The two renewals that arrived meanwhile share one question, sent after both.
    expect(asked).toEqual([7n, 7n]);
    forwarder.renewed({ id: 7n, by: undefined }, 5_000, 1);
    expect(await Promise.all(later.map(async (each) => each))).toEqual([5_000, 5_000]);
    expect(asked).toHaveLength(2);
  });

  test('that the leader refuses fail, and later ones are still sent', async () => {
    const { forwarder, asked } = createForwarder();
    const first = forwarder.renew(7n, undefined);
    const later = forwarder.renew(7n, undefined);
    forwarder.refused({ id: 7n, by: undefined }, overloaded);
    await expect(first).rejects.toMatchObject({ code: 'overloaded' });
    expect(asked).toEqual([7n, 7n]);
    forwarder.renewed({ id: 7n, by: undefined }, 5_000, 1);
    expect(await later).toBe(5_000);
    forwarder.refused({ id: 7n, by: undefined }, overloaded);
    forwarder.refused({ id: 8n, by: undefined }, overloaded);
  });

  test('are all sent to the next leader when the link to the last one closes', async () => {
    const { forwarder } = createForwarder();
    const renewals = [forwarder.renew(7n, undefined), forwarder.renew(7n, undefined), forwarder.renew(8n, undefined)];
    forwarder.linked(undefined);
    const asked: bigint[] = [];
    forwarder.linked({ renew: ({ id }) => asked.push(id) });
    expect(asked).toEqual([7n, 8n]);
    forwarder.renewed({ id: 7n, by: undefined }, 5_000, 1);
    forwarder.renewed({ id: 8n, by: undefined }, 6_000, 1);
    expect(await Promise.all(renewals.map(async (each) => each))).toEqual([5_000, 5_000, 6_000]);
  });
});

describe('renewals of one lease by several users', () => {
  const ann = { user: 'ann', authRevision: 5 };
  const all = [ann, { user: 'bob', authRevision: 5 }, { user: 'ann', authRevision: 6 }, undefined];

  test('share no answer, neither of the leader nor of the next one', async () => {
    const asked: AskedRenewal[] = [];
    const forwarder = new RenewalForwarder({ renewHere: () => undefined, revision: () => 1 });
    forwarder.linked({ renew: (renewal) => asked.push(renewal) });
    const outcomes = [...all, ann].map((by) => Promise.resolve(forwarder.renew(7n, by)).catch((error: Error) => error));
    expect(asked.map(({ by }) => by)).toEqual(all);
    const denied = new GrpcStatus(GrpcCode.permissionDenied, 'etcdserver: permission denied');
    forwarder.refused({ id: 7n, by: all[1] }, denied);
    forwarder.renewed({ id: 7n, by: { ...ann } }, 5_000, 1);
    expect(await Promise.all(outcomes.slice(0, 2))).toEqual([5_000, denied]);
    // The second renewal of the first user is a question of its own.
    expect(asked.splice(0)).toHaveLength(5);
    forwarder.linked(undefined);
    forwarder.linked({ renew: (renewal) => asked.push(renewal) });
    expect(asked.map(({ by }) => by)).toEqual([all[2], undefined, ann]);
    for (const [at, { id, by }] of asked.entries()) forwarder.renewed({ id, by }, at + 1, 1);
    expect(await Promise.all(outcomes.slice(2))).toEqual([1, 2, 3]);
  });

  test('are each checked again by a server that begins to lead', async () => {
    let leads = false;
    const forwarder = new RenewalForwarder({
      renewHere: (_id, by) => {
        if (!leads) return undefined;
        return by?.user === 'ann'
          ? 4_000
          : Promise.reject(new AccessError({ kind: 'error', code: 'PermissionDenied' }));
      },
      revision: () => 1,
    });
    const outcomes = all.map((by) => Promise.resolve(forwarder.renew(7n, by)).catch((error: Error) => error.name));
    leads = true;
    forwarder.leads();
    expect(await Promise.all(outcomes)).toEqual([4_000, 'AccessError', 4_000, 'AccessError']);
  });
});

describe('renewals on a server that reaches no leader', () => {
  test('fail when that has lasted too long, and so do later ones until there is a leader', async () => {
    const { forwarder, asked } = createForwarder();
    const waiting = forwarder.renew(7n, undefined);
    // The link to the leader is open: the leader will answer.
    forwarder.lost();
    forwarder.renewed({ id: 7n, by: undefined }, 5_000, 1);
    expect(await waiting).toBe(5_000);

    forwarder.linked(undefined);
    const unanswered = [forwarder.renew(7n, undefined), forwarder.renew(7n, undefined), forwarder.renew(8n, undefined)];
    forwarder.lost();
    for (const each of unanswered) await expect(each).rejects.toMatchObject({ code: 'noLeader' });
    await expect(forwarder.renew(9n, undefined)).rejects.toMatchObject({ code: 'noLeader' });

    forwarder.linked({ renew: ({ id }) => asked.push(id) });
    const again = forwarder.renew(8n, undefined);
    forwarder.renewed({ id: 8n, by: undefined }, 6_000, 1);
    expect(await again).toBe(6_000);
    expect(asked).toEqual([7n, 8n]);
  });

  test('wait again after the server stopped leading', async () => {
    let leads = false;
    const forwarder = new RenewalForwarder({ renewHere: () => (leads ? 4_000 : undefined), revision: () => 1 });
    forwarder.lost();
    await expect(forwarder.renew(7n, undefined)).rejects.toMatchObject({ code: 'noLeader' });
    leads = true;
    forwarder.leads();
    expect(await forwarder.renew(7n, undefined)).toBe(4_000);
    leads = false;
    const waiting = forwarder.renew(7n, undefined);
    forwarder.linked({ renew: ({ id }) => forwarder.renewed({ id: id, by: undefined }, 3_000, 1) });
    expect(await waiting).toBe(3_000);
  });
});

describe('a renewal on the leader', () => {
  test('that its overloaded log rejects is refused: no other server would ever answer it', async () => {
    const forwarder = new RenewalForwarder({
      renewHere: () => Promise.reject(new ProposalError('overloaded', 'too many requests wait for the log')),
      revision: () => 1,
    });
    await expect(forwarder.renew(7n, undefined)).rejects.toThrow('too many requests wait for the log');
  });
});
