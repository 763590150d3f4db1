import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AuthChange, Permission, PermissionType } from '@tenure/core';
import { bytesFromLatin1, latin1FromBytes } from '@tenure/codec';
import { tenureLog } from '@tenure/protocol';

type Change = NonNullable<MessageInitShape<typeof tenureLog.AuthSchema>['change']>;

const types = {
  read: tenureLog.Auth_Permission_Type.READ,
  write: tenureLog.Auth_Permission_Type.WRITE,
  readWrite: tenureLog.Auth_Permission_Type.READ_WRITE,
} as const satisfies Record<PermissionType, tenureLog.Auth_Permission_Type>;

/** A change of the auth data as the log holds it. Keys are latin1 strings in the core. */
export function authMessageOf(change: AuthChange): Change {
  switch (change.kind) {
    case 'enable':
      return { case: 'enable', value: {} };
    case 'disable':
      return { case: 'disable', value: {} };
    case 'addUser': {
      const { user: name, passwordHash, noPassword } = change;
      return { case: 'addUser', value: { name, passwordHash, noPassword } };
    }
    case 'deleteUser':
      return { case: 'deleteUser', value: change.user };
    case 'changePassword':
      return { case: 'changePassword', value: { name: change.user, passwordHash: change.passwordHash } };
    case 'grantRole':
      return { case: 'grantRole', value: { user: change.user, role: change.role } };
    case 'revokeRole':
      return { case: 'revokeRole', value: { user: change.user, role: change.role } };
    case 'addRole':
      return { case: 'addRole', value: change.role };
    case 'deleteRole':
      return { case: 'deleteRole', value: change.role };
    case 'grantPermission': {
      const { type, ...range } = change.permission;
      return { case: 'grantPermission', value: { role: change.role, type: types[type], ...rangeMessage(range) } };
    }
    case 'revokePermission':
      return { case: 'revokePermission', value: { role: change.role, ...rangeMessage(change) } };
    case 'issueToken': {
      const { user, tokenDigest: digest, authRevision } = change;
      return { case: 'issueToken', value: { user, digest, authRevision: BigInt(authRevision) } };
    }
    case 'recoverRoot':
      return { case: 'recoverRoot', value: change.passwordHash };
  }
}

/** Throws on a change that this version does not know. */
export function authChangeOf({ change }: tenureLog.Auth): AuthChange {
  switch (change.case) {
    case 'enable':
      return { kind: 'enable' };
    case 'disable':
      return { kind: 'disable' };
    case 'addUser': {
      const { name: user, passwordHash, noPassword } = change.value;
      return { kind: 'addUser', user, passwordHash, noPassword };
    }
    case 'deleteUser':
      return { kind: 'deleteUser', user: change.value };
    case 'changePassword':
      return { kind: 'changePassword', user: change.value.name, passwordHash: change.value.passwordHash };
    case 'grantRole':
      return { kind: 'grantRole', user: change.value.user, role: change.value.role };
    case 'revokeRole':
      return { kind: 'revokeRole', user: change.value.user, role: change.value.role };
    case 'addRole':
      return { kind: 'addRole', role: change.value };
    case 'deleteRole':
      return { kind: 'deleteRole', role: change.value };
    case 'grantPermission': {
      const permission: Permission = { type: typeOf(change.value.type), ...rangeOf(change.value) };
      return { kind: 'grantPermission', role: change.value.role, permission };
    }
    case 'revokePermission':
      return { kind: 'revokePermission', role: change.value.role, ...rangeOf(change.value) };
    case 'issueToken': {
      const { user, digest, authRevision } = change.value;
      return { kind: 'issueToken', user, tokenDigest: digest, authRevision: Number(authRevision) };
    }
    case 'recoverRoot':
      return { kind: 'recoverRoot', passwordHash: change.value };
    case undefined:
      throw new Error('the log holds a change of users or roles that this version of Tenure does not know: upgrade it');
  }
}

interface KeyRange {
  readonly key: string;
  readonly rangeEnd: string;
}

function rangeMessage({ key, rangeEnd }: KeyRange): { key: Uint8Array; rangeEnd: Uint8Array } {
  return { key: bytesFromLatin1(key), rangeEnd: bytesFromLatin1(rangeEnd) };
}

function rangeOf({ key, rangeEnd }: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array }): KeyRange {
  return { key: latin1FromBytes(key), rangeEnd: latin1FromBytes(rangeEnd) };
}

function typeOf(type: tenureLog.Auth_Permission_Type): PermissionType {
  if (type === types.read) return 'read';
  return type === types.write ? 'write' : 'readWrite';
}
