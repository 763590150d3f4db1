import { AuthState } from '../auth/auth-state.ts';
import type { Permission, PermissionType, Role, User } from '../auth/auth-types.ts';
import { type ByteReader, readList } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';

const typeBytes = { read: 1, write: 2, readWrite: 3 } as const satisfies Record<PermissionType, number>;

/** The part of the cluster record with users and roles, ordered by name. */
export function writeAuth(out: ByteWriter, auth: AuthState): void {
  out.byte(auth.enabled ? 1 : 0);
  out.varint(auth.revision);
  out.varint(auth.enabledAt);
  out.varint(auth.users.size);
  for (const name of auth.userNames) writeUser(out, auth.users.get(name)!);
  out.varint(auth.roles.size);
  for (const name of auth.roleNames) writeRole(out, auth.roles.get(name)!);
}

export function readAuth(input: ByteReader): AuthState {
  return new AuthState({
    enabled: input.byte() === 1,
    revision: input.varint(),
    enabledAt: input.varint(),
    users: new Map(readList(input, readUser).map((user) => [user.name, user])),
    roles: new Map(readList(input, readRole).map((role) => [role.name, role])),
  });
}

function writeUser(out: ByteWriter, user: User): void {
  out.text(user.name);
  out.text(user.passwordHash);
  out.byte(user.noPassword ? 1 : 0);
  out.varint(user.since);
  out.varint(user.roles.length);
  for (const role of user.roles) out.text(role);
}

function readUser(input: ByteReader): User {
  return {
    name: input.text(),
    passwordHash: input.text(),
    noPassword: input.byte() === 1,
    since: input.varint(),
    roles: readList(input, () => input.text()),
  };
}

function writeRole(out: ByteWriter, { name, permissions }: Role): void {
  out.text(name);
  out.varint(permissions.length);
  for (const { type, key, rangeEnd } of permissions) {
    out.byte(typeBytes[type]);
    out.latin1(key);
    out.latin1(rangeEnd);
  }
}

function readRole(input: ByteReader): Role {
  return { name: input.text(), permissions: readList(input, readPermission) };
}

function readPermission(input: ByteReader): Permission {
  const byte = input.byte();
  const type = byte === typeBytes.read ? 'read' : byte === typeBytes.write ? 'write' : 'readWrite';
  return { type, key: input.latin1(), rangeEnd: input.latin1() };
}
