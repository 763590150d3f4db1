import {
  type AccessCheck,
  type AuthChange,
  type AuthState,
  type CoreError,
  type Permission,
  type PermissionType,
  rootName,
} from '@tenure/core';
import { authpb, etcdserverpb } from '@tenure/protocol';
import { bytesFromLatin1, decodeRequest, encodeFramed, latin1FromBytes } from '@tenure/codec';
import type { PasswordHasher } from '../auth/password-hasher.ts';
import type { TokenProvider } from '../auth/token-provider.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { Call } from '../transport/transport.ts';
import type { CommandRules } from './command-rules.ts';
import type { Identity } from './identity.ts';
import { requested, throwRefused } from './requested.ts';
import { headerMessage } from './response-header.ts';
import { answered, statusNamed, statusOfCoreError } from './status-of.ts';

export interface AuthServiceOptions {
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly rules: CommandRules;
  readonly passwords: PasswordHasher;
  readonly tokens: Pick<TokenProvider, 'issue'>;
}

type Caller = Pick<Call, 'connection' | 'requester' | 'signal'>;
type Header = ReturnType<typeof headerMessage>;

/** Longer passwords are refused; bcrypt, and so etcd, takes 72 bytes. */
const maxPasswordBytes = 4_096;
/** How often a password is checked when the auth data changes between the check and the issue of the token. */
const maxLogins = 3;

const types = new Map<authpb.Permission_Type, PermissionType>([
  [authpb.Permission_Type.READ, 'read'],
  [authpb.Permission_Type.WRITE, 'write'],
  [authpb.Permission_Type.READWRITE, 'readWrite'],
]);
/** Shown for the role root, whatever was granted to it: no range limits its holders (etcd's server/auth/store.go). */
const rootPermissions: readonly Permission[] = [{ type: 'readWrite', key: '', rangeEnd: '\0' }];

const typeNumbers = new Map(Array.from(types, ([number, type]) => [type, number]));

/**
 * etcd's Auth service. Changes go through the log, where their permission is checked again; passwords are hashed before
 * that, after the access guard has admitted the client.
 */
export class AuthService {
  readonly #options: AuthServiceOptions;

  constructor(options: AuthServiceOptions) {
    this.#options = options;
  }

  async enable(caller: Caller): Promise<Buffer> {
    const header = await this.#change({ kind: 'enable' }, caller);
    return encodeFramed(etcdserverpb.AuthEnableResponseSchema, { header });
  }

  async disable(caller: Caller): Promise<Buffer> {
    const header = await this.#change({ kind: 'disable' }, caller);
    return encodeFramed(etcdserverpb.AuthDisableResponseSchema, { header });
  }

  async status(caller: Caller): Promise<Buffer> {
    const { enabled, revision } = await this.#read(caller, (access) => access.root());
    return encodeFramed(etcdserverpb.AuthStatusResponseSchema, {
      header: this.#header(),
      enabled,
      authRevision: BigInt(revision),
    });
  }

  /**
   * As in etcd the answer does not say whether the name or the password is wrong. Unlike etcd's it does not say either
   * that a user has no password.
   */
  async authenticate(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name, password } = decodeRequest(etcdserverpb.AuthenticateRequestSchema, request);
    const { replica, passwords, tokens } = this.#options;
    await answered(replica.linearize());
    for (let logins = 0; logins < maxLogins; logins += 1) {
      const { auth } = replica.state;
      if (!auth.enabled) throw statusNamed('AuthNotEnabled');
      const hash = auth.users.get(name)?.passwordHash;
      const { remoteAddress: client } = caller.connection;
      const attempt = { user: name, password, hash: hash === '' ? undefined : hash, client, signal: caller.signal };
      if (!(await passwords.check(attempt))) throw statusNamed('AuthFailed');
      const token = await tokens.issue(name, auth.revision);
      if (token !== undefined) {
        return encodeFramed(etcdserverpb.AuthenticateResponseSchema, { header: this.#header(), token });
      }
    }
    throw statusNamed('AuthOldRevision');
  }

  async userAdd(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name, password, options } = decodeRequest(etcdserverpb.AuthUserAddRequestSchema, request);
    const noPassword = options?.noPassword ?? false;
    const passwordHash = noPassword ? '' : await this.#hash(password, caller);
    const header = await this.#change({ kind: 'addUser', user: name, passwordHash, noPassword }, caller);
    return encodeFramed(etcdserverpb.AuthUserAddResponseSchema, { header });
  }

  async userGet(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name } = decodeRequest(etcdserverpb.AuthUserGetRequestSchema, request);
    const { users } = await this.#read(caller, (access) => access.self(name));
    const user = users.get(name);
    if (user === undefined) throw statusNamed('UserNotFound');
    return encodeFramed(etcdserverpb.AuthUserGetResponseSchema, { header: this.#header(), roles: [...user.roles] });
  }

  async userList(caller: Caller): Promise<Buffer> {
    const { userNames } = await this.#read(caller, (access) => access.root());
    return encodeFramed(etcdserverpb.AuthUserListResponseSchema, { header: this.#header(), users: [...userNames] });
  }

  async userDelete(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name: user } = decodeRequest(etcdserverpb.AuthUserDeleteRequestSchema, request);
    const header = await this.#change({ kind: 'deleteUser', user }, caller);
    return encodeFramed(etcdserverpb.AuthUserDeleteResponseSchema, { header });
  }

  /**
   * As in etcd, no password logs in after a change to the empty one. etcd stores a hash that the client has made; here
   * the client cannot choose how its password is hashed.
   */
  async userChangePassword(request: Buffer, caller: Caller): Promise<Buffer> {
    const {
      name: user,
      password,
      hashedPassword,
    } = decodeRequest(etcdserverpb.AuthUserChangePasswordRequestSchema, request);
    if (password === '' && hashedPassword !== '') throw statusNamed('InvalidAuthManagement');
    const isWithout = password === '' || (this.#options.replica.state.auth.users.get(user)?.noPassword ?? false);
    const passwordHash = isWithout ? '' : await this.#hash(password, caller);
    const header = await this.#change({ kind: 'changePassword', user, passwordHash }, caller);
    return encodeFramed(etcdserverpb.AuthUserChangePasswordResponseSchema, { header });
  }

  async userGrantRole(request: Buffer, caller: Caller): Promise<Buffer> {
    const { user, role } = decodeRequest(etcdserverpb.AuthUserGrantRoleRequestSchema, request);
    const header = await this.#change({ kind: 'grantRole', user, role }, caller);
    return encodeFramed(etcdserverpb.AuthUserGrantRoleResponseSchema, { header });
  }

  async userRevokeRole(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name: user, role } = decodeRequest(etcdserverpb.AuthUserRevokeRoleRequestSchema, request);
    const header = await this.#change({ kind: 'revokeRole', user, role }, caller);
    return encodeFramed(etcdserverpb.AuthUserRevokeRoleResponseSchema, { header });
  }

  async roleAdd(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name: role } = decodeRequest(etcdserverpb.AuthRoleAddRequestSchema, request);
    const header = await this.#change({ kind: 'addRole', role }, caller);
    return encodeFramed(etcdserverpb.AuthRoleAddResponseSchema, { header });
  }

  async roleGet(request: Buffer, caller: Caller): Promise<Buffer> {
    const { role: name } = decodeRequest(etcdserverpb.AuthRoleGetRequestSchema, request);
    const { roles } = await this.#read(caller, (access) => access.holderOf(name));
    const role = roles.get(name);
    if (role === undefined) throw statusNamed('RoleNotFound');
    const perm = (name === rootName ? rootPermissions : role.permissions).map(permissionMessage);
    return encodeFramed(etcdserverpb.AuthRoleGetResponseSchema, { header: this.#header(), perm });
  }

  async roleList(caller: Caller): Promise<Buffer> {
    const { roleNames } = await this.#read(caller, (access) => access.root());
    return encodeFramed(etcdserverpb.AuthRoleListResponseSchema, { header: this.#header(), roles: [...roleNames] });
  }

  async roleDelete(request: Buffer, caller: Caller): Promise<Buffer> {
    const { role } = decodeRequest(etcdserverpb.AuthRoleDeleteRequestSchema, request);
    const header = await this.#change({ kind: 'deleteRole', role }, caller);
    return encodeFramed(etcdserverpb.AuthRoleDeleteResponseSchema, { header });
  }

  async roleGrantPermission(request: Buffer, caller: Caller): Promise<Buffer> {
    const { name: role, perm } = decodeRequest(etcdserverpb.AuthRoleGrantPermissionRequestSchema, request);
    if (perm === undefined) throw statusNamed('PermissionNotGiven');
    const type = types.get(perm.permType);
    // etcd stores a permission of an unknown type, which grants nothing.
    if (type === undefined) throw statusNamed('InvalidAuthManagement');
    const permission: Permission = { type, key: latin1FromBytes(perm.key), rangeEnd: latin1FromBytes(perm.rangeEnd) };
    const header = await this.#change({ kind: 'grantPermission', role, permission }, caller);
    return encodeFramed(etcdserverpb.AuthRoleGrantPermissionResponseSchema, { header });
  }

  async roleRevokePermission(request: Buffer, caller: Caller): Promise<Buffer> {
    const { role, key, rangeEnd } = decodeRequest(etcdserverpb.AuthRoleRevokePermissionRequestSchema, request);
    const change: AuthChange = {
      kind: 'revokePermission',
      role,
      key: latin1FromBytes(key),
      rangeEnd: latin1FromBytes(rangeEnd),
    };
    const header = await this.#change(change, caller);
    return encodeFramed(etcdserverpb.AuthRoleRevokePermissionResponseSchema, { header });
  }

  async #change(change: AuthChange, { requester }: Caller): Promise<Header> {
    const { replica, rules } = this.#options;
    const command = requested({ kind: 'auth', change }, requester);
    const refused = rules.refusal(command);
    if (refused !== undefined) throw refused;
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    return this.#header();
  }

  /** The auth data as of now on all servers, if the requester may read that part of it. */
  async #read({ requester }: Caller, check: (access: AccessCheck) => CoreError | undefined): Promise<AuthState> {
    const { replica } = this.#options;
    await answered(replica.linearize());
    const access = replica.state.accessOf(requester);
    if (access !== undefined) throwRefused(check(access));
    return replica.state.auth;
  }

  #hash(password: string, caller: Caller): Promise<string> {
    if (Buffer.byteLength(password) > maxPasswordBytes) throw statusNamed('RequestTooLarge');
    const { connection, signal } = caller;
    return this.#options.passwords.hash(password, connection.remoteAddress, signal);
  }

  #header(): Header {
    const { identity, replica } = this.#options;
    return headerMessage(identity, replica.state.currentRevision, replica.state.epoch);
  }
}

function permissionMessage({ type, key, rangeEnd }: Permission) {
  const permType = typeNumbers.get(type) ?? authpb.Permission_Type.READ;
  return { permType, key: bytesFromLatin1(key), rangeEnd: bytesFromLatin1(rangeEnd) };
}
