import { type AuthChange, type Command, type Requester, rootName } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { type LeadingReplica, leadingReplica } from './testing/leading-replica.ts';
import { ReplicaPair, type WiredReplica } from './testing/replica-pair.ts';

let pair: ReplicaPair | undefined;
afterEach(() => pair?.close());

const usersToBegin: readonly AuthChange[] = [
  { kind: 'addUser', user: rootName, passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: rootName, role: rootName },
  { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
];

interface World extends LeadingReplica {
  readonly follower: WiredReplica;
  /** As a server that has applied everything would name the user now; undefined while authentication is disabled. */
  as(user: string): Requester | undefined;
}

/** A leader and a follower, with the lease 1, and the users root and ann, who has no permissions. */
async function start({ isEnabled }: { readonly isEnabled: boolean }): Promise<World> {
  pair = new ReplicaPair();
  const leading = await leadingReplica(pair);
  const { replica } = leading.leader;
  const follower = await pair.join();
  pair.link(follower, leading.leader);
  await replica.propose({ kind: 'leaseGrant', id: 1n, ttlMs: 30_000, label: '' });
  const changes = isEnabled ? [...usersToBegin, { kind: 'enable' } as const] : usersToBegin;
  for (const change of changes) expect(await replica.propose({ kind: 'auth', change })).toMatchObject({ kind: 'ok' });
  const { auth } = replica.state;
  const as = (user: string): Requester | undefined => (isEnabled ? { user, authRevision: auth.revision } : undefined);
  return { ...leading, follower, as };
}

/** A command of root. */
function byRoot(command: Command, by: Requester | undefined): Command {
  return by === undefined ? command : { ...command, by };
}

const attach: Command = {
  kind: 'put',
  put: { key: 'secret', value: '', lease: 1n, prevKv: false, ignoreValue: false, ignoreLease: false },
};

describe('a renewal at the leader is refused by what a follower has acknowledged before it:', () => {
  test.each<{ what: string; command: Command; isEnabled: boolean; code: string }>([
    { what: 'a key of the lease', command: attach, isEnabled: true, code: 'PermissionDenied' },
    {
      what: 'the end of a user',
      command: { kind: 'auth', change: { kind: 'deleteUser', user: 'ann' } },
      isEnabled: true,
      code: 'PermissionDenied',
    },
    {
      what: 'that authentication is enabled',
      command: { kind: 'auth', change: { kind: 'enable' } },
      isEnabled: false,
      code: 'UserEmpty',
    },
  ])('$what', async ({ command, isEnabled, code }) => {
    const { leader, follower, driver, renewals, as } = await start({ isEnabled });
    expect(driver.renew(1n, as('ann'))).toBe(30_000);
    expect(renewals()).toBe(1);

    const hear = leader.engine.replies.hold();
    expect(await follower.replica.propose(byRoot(command, as(rootName)))).not.toMatchObject({ kind: 'error' });
    // The leader does not know it yet.
    expect(leader.replica.position.index).toBeLessThan(follower.replica.position.index);
    const answer = Promise.resolve(driver.renew(1n, as('ann')));
    hear();
    await expect(answer).rejects.toMatchObject({ name: 'AccessError', refusal: { code } });
    expect(renewals()).toBe(1);
    driver.stop(new Error('the test is over'));
  });
});

test('a renewal at the leader waits for one append, however many follow', async () => {
  const { leader, driver, as } = await start({ isEnabled: true });
  const hearFirst = leader.engine.replies.hold();
  const first = leader.replica.propose(byRoot({ ...attach }, as(rootName)));
  await leader.engine.replies.arrival();
  const answers: number[] = [];
  void Promise.resolve(driver.renew(1n, as(rootName))).then((ttlMs) => answers.push(ttlMs ?? -1));
  const second = leader.replica.propose(byRoot({ ...attach }, as(rootName)));
  const hearSecond = leader.engine.replies.hold();
  hearFirst();
  await first;
  await leader.engine.replies.arrival();
  await new Promise((resolve) => setImmediate(resolve));
  const answeredBefore = [...answers];
  hearSecond();
  await second;
  expect(answeredBefore).toEqual([30_000]);
  driver.stop(new Error('the test is over'));
});

test('a server that may not act for leases refuses no renewal: the leader may know another permission', async () => {
  const { leader, driver } = await start({ isEnabled: true });
  await expect(Promise.resolve(driver.renew(1n, undefined))).rejects.toMatchObject({ name: 'AccessError' });
  leader.replica.stepDown(leader.replica.state.epoch);
  expect(driver.renew(1n, undefined)).toBeUndefined();
  driver.stop(new Error('the test is over'));
});
