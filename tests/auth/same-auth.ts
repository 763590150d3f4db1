import { expect } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';

/** The auth data as a server tells it. */
export async function authOf({ auth }: Pick<ClusterMember, 'auth'>): Promise<object> {
  const { enabled, authRevision } = await auth.authStatus({});
  const { users } = await auth.userList({});
  const { roles } = await auth.roleList({});
  return {
    enabled,
    authRevision,
    users: await Promise.all(users.map(async (name) => [name, (await auth.userGet({ name })).roles])),
    roles: await Promise.all(
      roles.map(async (role) => {
        const { perm } = await auth.roleGet({ role });
        const shown = perm.map(
          ({ permType, key, rangeEnd }) =>
            `${permType} ${Buffer.from(key).toString()} ${Buffer.from(rangeEnd).toString()}`,
        );
        return [role, shown];
      }),
    ),
  };
}

/** All servers have the same users, roles and permissions. */
export async function expectSameAuth({ members }: Cluster): Promise<void> {
  const [first, ...others] = await Promise.all(members.map((member) => authOf(member)));
  for (const other of others) expect(other).toEqual(first);
  expect(first).toMatchObject({ enabled: true });
}
