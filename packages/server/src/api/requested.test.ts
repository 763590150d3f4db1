import { type AuthChange, type CommandBody, rootName } from '@tenure/core';
import { afterEach, describe, expect, test } from 'vitest';
import { ReplicaPair, type WiredReplica } from '../replica/testing/replica-pair.ts';
import { requestedOfServers } from './requested.ts';

let pair: ReplicaPair | undefined;
afterEach(() => pair?.close());

const enable: AuthChange = { kind: 'enable' };
const userRoot: readonly AuthChange[] = [
  { kind: 'addUser', user: rootName, passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: rootName, role: rootName },
];
const alarm: CommandBody = { kind: 'alarm', action: 'activate', memberId: 7n, alarm: 'corrupt' };

interface Lag {
  readonly lagging: WiredReplica;
  /** Ends the lag. */
  readonly hear: () => void;
}

/** Authentication has been enabled, which another server has acknowledged and this one does not know. */
const lags: Readonly<Record<string, (leader: WiredReplica, follower: WiredReplica) => Promise<Lag>>> = {
  'the leader, which has not heard from the log': async (leader, follower) => {
    const hear = leader.engine.replies.hold();
    expect(await follower.replica.propose({ kind: 'auth', change: enable })).toMatchObject({ kind: 'ok' });
    return { lagging: leader, hear };
  },
  'a follower, which has not read the log': async (leader, follower) => {
    const hear = follower.engine.reading.hold();
    expect(await leader.replica.propose({ kind: 'auth', change: enable })).toMatchObject({ kind: 'ok' });
    return { lagging: follower, hear };
  },
};

async function laggingAs(name: string): Promise<Lag> {
  pair = new ReplicaPair();
  const [leader, follower] = [await pair.join(), await pair.join()];
  await pair.lead(leader, follower);
  for (const change of userRoot) await leader.replica.propose({ kind: 'auth', change });
  await follower.replica.whenApplied(leader.replica.position.index);
  const lag = await lags[name]!(leader, follower);
  expect(lag.lagging.replica.state.auth.enabled).toBe(false);
  return lag;
}

describe.each(Object.keys(lags))('at %s', (name) => {
  test('a command that servers propose too is refused without a requester', async () => {
    const { lagging, hear } = await laggingAs(name);
    const command = requestedOfServers(alarm, undefined, lagging.replica);
    hear();
    await expect(command).rejects.toMatchObject({ message: 'etcdserver: user name is empty' });
  });

  test('it is in the log with its requester', async () => {
    const { lagging, hear } = await laggingAs(name);
    const by = { user: rootName, authRevision: 1 };
    expect(await requestedOfServers(alarm, by, lagging.replica)).toEqual({ ...alarm, by });
    hear();
  });

  test('nothing later refuses it', async () => {
    const { lagging, hear } = await laggingAs(name);
    const response = lagging.replica.propose(alarm);
    hear();
    expect(await response).not.toMatchObject({ kind: 'error' });
    expect(lagging.replica.state).toMatchObject({ auth: { enabled: true }, alarms: [{ memberId: 7n }] });
  });
});
