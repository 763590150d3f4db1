import { type AuthState, byBytes } from '../auth/auth-state.ts';
import { type AuthChange, type Permission, type Role, rootName, type User } from '../auth/auth-types.ts';
import { type CoreError, coreError } from '../core-error.ts';
import { ok } from './cluster-commands.ts';
import type { CommandResponse } from './command.ts';
import type { State } from './state.ts';

/** Limit on the auth data, which is in every snapshot and is written in one step. */
const maxAuthBytes = 4 * 1024 * 1024;

/** The caller has checked the permission. As in etcd, a change without an effect leaves the auth revision as it is. */
export function applyAuthChange(state: State, change: AuthChange): CommandResponse {
  const before = state.cluster.auth;
  const after = changed(before, change);
  if ('code' in after) return after;
  if (after.bytes > maxAuthBytes && after.bytes > before.bytes) return coreError('NoSpace');
  state.cluster.auth = after;
  return ok(state);
}

type Outcome = AuthState | CoreError;
type Change<Kind extends AuthChange['kind']> = Extract<AuthChange, { kind: Kind }>;

function changed(auth: AuthState, change: AuthChange): Outcome {
  switch (change.kind) {
    case 'enable':
      return enable(auth);
    case 'disable':
      return auth.enabled ? auth.with({ enabled: false }) : auth;
    case 'addUser':
      return addUser(auth, change);
    case 'deleteUser':
      return deleteUser(auth, change.user);
    case 'changePassword':
      return changePassword(auth, change);
    case 'grantRole':
      return grantRole(auth, change);
    case 'revokeRole':
      return revokeRole(auth, change);
    case 'addRole':
      return addRole(auth, change.role);
    case 'deleteRole':
      return deleteRole(auth, change.role);
    case 'grantPermission':
      return grantPermission(auth, change);
    case 'revokePermission':
      return revokePermission(auth, change);
    case 'issueToken':
      return issueToken(auth, change);
    case 'recoverRoot':
      return recoverRoot(auth, change.passwordHash);
  }
}

/** As in etcd, to enable is no change of the auth data: identities stay valid. Tokens count from here all the same. */
function enable(auth: AuthState): Outcome {
  if (auth.enabled) return auth;
  const root = auth.users.get(rootName);
  if (root === undefined) return coreError('RootUserNotExist');
  if (!auth.isRoot(root)) return coreError('RootRoleNotGranted');
  return auth.enable();
}

function addUser(auth: AuthState, { user: name, passwordHash, noPassword }: Change<'addUser'>): Outcome {
  if (name === '') return coreError('UserEmpty');
  if (auth.users.has(name)) return coreError('UserAlreadyExists');
  return withUser(auth, { name, passwordHash, noPassword, roles: [], since: auth.revision + 1 });
}

function deleteUser(auth: AuthState, name: string): Outcome {
  if (auth.enabled && name === rootName) return coreError('InvalidAuthManagement');
  if (!auth.users.has(name)) return coreError('UserNotFound');
  const users = new Map(auth.users);
  users.delete(name);
  return auth.with({ users });
}

function changePassword(auth: AuthState, { user: name, passwordHash }: Change<'changePassword'>): Outcome {
  const user = auth.users.get(name);
  if (user === undefined) return coreError('UserNotFound');
  return withUser(auth, { ...user, passwordHash, since: auth.revision + 1 });
}

function grantRole(auth: AuthState, { user: name, role }: Change<'grantRole'>): Outcome {
  const user = auth.users.get(name);
  if (user === undefined) return coreError('UserNotFound');
  if (role !== rootName && !auth.roles.has(role)) return coreError('RoleNotFound');
  if (user.roles.includes(role)) return auth;
  return withUser(auth, { ...user, roles: [...user.roles, role].sort(byBytes) });
}

function revokeRole(auth: AuthState, { user: name, role }: Change<'revokeRole'>): Outcome {
  if (auth.enabled && name === rootName && role === rootName) return coreError('InvalidAuthManagement');
  const user = auth.users.get(name);
  if (user === undefined) return coreError('UserNotFound');
  if (!user.roles.includes(role)) return coreError('RoleNotGranted');
  return withUser(auth, withoutRole(user, role));
}

function addRole(auth: AuthState, name: string): Outcome {
  if (name === '') return coreError('RoleEmpty');
  if (auth.roles.has(name)) return coreError('RoleAlreadyExists');
  return withRole(auth, { name, permissions: [] });
}

function deleteRole(auth: AuthState, name: string): Outcome {
  if (auth.enabled && name === rootName) return coreError('InvalidAuthManagement');
  if (!auth.roles.has(name)) return coreError('RoleNotFound');
  const roles = new Map(auth.roles);
  roles.delete(name);
  const users = new Map(Array.from(auth.users, ([user, data]) => [user, withoutRole(data, name)]));
  return auth.with({ roles, users });
}

function grantPermission(auth: AuthState, { role: name, permission }: Change<'grantPermission'>): Outcome {
  const { key, rangeEnd } = permission;
  const isRange = key !== '' && (rangeEnd === '' || rangeEnd === '\0' || key < rangeEnd);
  if (!isRange) return coreError('InvalidAuthManagement');
  const role = auth.roles.get(name);
  if (role === undefined) return coreError('RoleNotFound');
  const known = role.permissions.findIndex(isOf(permission));
  const { permissions } = role;
  const changed =
    known < 0
      ? permissions.toSpliced(placeBehind(permissions, key), 0, permission)
      : permissions.with(known, permission);
  return withRole(auth, { name, permissions: changed });
}

function revokePermission(auth: AuthState, change: Change<'revokePermission'>): Outcome {
  const role = auth.roles.get(change.role);
  if (role === undefined) return coreError('RoleNotFound');
  const revoked = role.permissions.find(isOf(change));
  if (revoked === undefined) return coreError('PermissionNotGranted');
  return withRole(auth, { ...role, permissions: role.permissions.filter((one) => one !== revoked) });
}

/** Refused when the password that was checked may be that of the past: the server checks it again. */
function issueToken(auth: AuthState, { user, authRevision }: Change<'issueToken'>): Outcome {
  if (!auth.enabled) return coreError('AuthNotEnabled');
  if (authRevision !== auth.revision) return coreError('AuthOldRevision');
  return auth.users.has(user) ? auth : coreError('UserNotFound');
}

function recoverRoot(auth: AuthState, passwordHash: string): Outcome {
  const roles = auth.users.get(rootName)?.roles ?? [];
  const isRoot = roles.includes(rootName);
  return withUser(auth, {
    name: rootName,
    passwordHash,
    noPassword: false,
    roles: isRoot ? roles : [...roles, rootName].sort(byBytes),
    since: auth.revision + 1,
  });
}

function withUser(auth: AuthState, user: User): AuthState {
  return auth.with({ users: new Map(auth.users).set(user.name, user) });
}

function withRole(auth: AuthState, role: Role): AuthState {
  return auth.with({ roles: new Map(auth.roles).set(role.name, role) });
}

function withoutRole(user: User, role: string): User {
  return user.roles.includes(role) ? { ...user, roles: user.roles.filter((one) => one !== role) } : user;
}

function isOf(range: { readonly key: string; readonly rangeEnd: string }): (permission: Permission) => boolean {
  return ({ key, rangeEnd }) => key === range.key && rangeEnd === range.rangeEnd;
}

/** The number of permissions up to this key. */
function placeBehind(sorted: readonly Permission[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]!.key <= key) low = middle + 1;
    else high = middle;
  }
  return low;
}
