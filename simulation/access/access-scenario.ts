import { type AuthChange, type Permission } from '@tenure/core';
import type { SeededRandom } from '@tenure/test-support';
import { namedRandom } from '../world/named-random.ts';

type ChangeOf<Kind extends AuthChange['kind']> = Extract<AuthChange, { readonly kind: Kind }>;

/** One change that the administrator requests. Passwords are as the client sends them. */
export interface AccessStep {
  readonly atMs: number;
  readonly change:
    | ChangeOf<
        | 'enable'
        | 'disable'
        | 'deleteUser'
        | 'grantRole'
        | 'revokeRole'
        | 'addRole'
        | 'deleteRole'
        | 'grantPermission'
        | 'revokePermission'
      >
    | { readonly kind: 'addUser' | 'changePassword'; readonly user: string; readonly password: string };
}

type Change = AccessStep['change'];

/** The users of the clients, without root. */
export const users: readonly string[] = ['ann', 'bob', 'eve'];
const rootName = 'root';
const shareOfSeeds = 0.13;
const gapMs = { min: 60, max: 700 };

const everything: Permission = { type: 'readWrite', key: '\0', rangeEnd: '\0' };
/** The permissions that a role may have, by its name. The keys of the clients begin with m/ and p/. */
const permissionsOf: Readonly<Record<string, readonly Permission[]>> = {
  all: [everything],
  mixed: [
    { type: 'readWrite', key: 'm/', rangeEnd: 'm0' },
    { type: 'readWrite', key: 'tag/', rangeEnd: 'tag0' },
  ],
  parts: [
    { type: 'read', key: 'm/', rangeEnd: 'm/3' },
    { type: 'readWrite', key: 'm/3', rangeEnd: 'm/6' },
    { type: 'readWrite', key: 'p/', rangeEnd: 'p0' },
    { type: 'read', key: 'tag/', rangeEnd: '\0' },
  ],
  readers: [{ type: 'read', key: '\0', rangeEnd: '\0' }],
};
const roles = Object.keys(permissionsOf);

/** Whether the seed has users: no part of the rest of its scenario depends on it. */
export function accessStepsOf(seed: number, faultsMs: number): readonly AccessStep[] {
  const random = namedRandom(seed, 'access');
  if (!random.chance(shareOfSeeds)) return [];
  const steps: AccessStep[] = beginning(random).map((change) => ({ atMs: 0, change }));
  let atMs = random.between(0, 1_500);
  steps.push({ atMs, change: { kind: 'enable' } });
  for (;;) {
    atMs += random.between(gapMs.min, gapMs.max);
    if (atMs >= faultsMs) return steps;
    for (const change of changes(random)) steps.push({ atMs, change });
  }
}

/** At the end, every user loses everything. */
export function revocations(): readonly AccessStep[] {
  const revoked = users.flatMap((user) =>
    [...roles, rootName].map((role): Change => ({ kind: 'revokeRole', user, role })),
  );
  return [{ kind: 'enable' } as const, ...revoked].map((change) => ({ atMs: 0, change }));
}

/** After that, every user may do everything. */
export function grants(): readonly AccessStep[] {
  const again = users.flatMap((user): Change[] => [
    { kind: 'addUser', user, password: `${user} again` },
    { kind: 'changePassword', user, password: `${user} last` },
    { kind: 'grantRole', user, role: rootName },
  ]);
  return again.map((change) => ({ atMs: 0, change }));
}

function beginning(random: SeededRandom): readonly Change[] {
  return [
    { kind: 'addUser', user: rootName, password: rootName },
    { kind: 'grantRole', user: rootName, role: rootName },
    ...users.map((user): Change => ({ kind: 'addUser', user, password: user })),
    ...roles.map((role): Change => ({ kind: 'addRole', role })),
    ...roles.flatMap((role) => granted(role)),
    ...users.map((user): Change => ({ kind: 'grantRole', user, role: random.pick(['all', 'all', 'mixed', 'parts']) })),
  ];
}

function granted(role: string): readonly Change[] {
  return (permissionsOf[role] ?? []).map((permission) => ({ kind: 'grantPermission', role, permission }));
}

/** One, or some that belong together. */
function changes(random: SeededRandom): readonly Change[] {
  const user = random.pick(users);
  const role = random.pick(roles);
  const roll = random.next();
  if (roll < 0.25) return [{ kind: 'revokeRole', user, role: random.pick(['all', 'all', role]) }];
  if (roll < 0.5) return [{ kind: 'grantRole', user, role: random.pick(['all', role]) }];
  const permission = random.pick(permissionsOf[role] ?? [everything]);
  const { key, rangeEnd } = permission;
  if (roll < 0.6) return [{ kind: 'revokePermission', role, key, rangeEnd }];
  if (roll < 0.72) return [{ kind: 'grantPermission', role, permission }];
  const password = `${user} ${random.below(1_000_000)}`;
  if (roll < 0.8) return [{ kind: 'changePassword', user, password }];
  if (roll < 0.88) {
    const added = [
      { kind: 'addUser', user, password },
      { kind: 'grantRole', user, role: random.pick(['all', role]) },
    ] as const;
    return [{ kind: 'deleteUser', user }, ...added];
  }
  if (roll < 0.92) return [{ kind: random.chance(0.7) ? 'grantRole' : 'revokeRole', user, role: rootName }];
  if (roll < 0.96) return [{ kind: 'deleteRole', role }, { kind: 'addRole', role }, ...granted(role)];
  return [{ kind: 'disable' }, { kind: 'enable' }];
}
