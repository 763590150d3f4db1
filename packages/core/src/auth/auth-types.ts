/** Who asked for a command or a read, while authentication is enabled. */
export interface Requester {
  /** '' for a client that has shown no identity. */
  readonly user: string;
  /** The revision of the auth data by which the client was identified. 0: no identity; less: an invalid one. */
  readonly authRevision: number;
}

/** A client that has shown no identity. */
export const anonymous: Requester = { user: '', authRevision: 0 };

/** A client that has shown a token which is not valid, or not any more. */
export const invalidToken: Requester = { user: '', authRevision: -1 };

/** A client whose token names a past revision of the auth data, where the current one is required. */
export const oldToken: Requester = { user: '', authRevision: -1 };

/** The user and the role with this name may do everything. */
export const rootName = 'root';

export type PermissionType = 'read' | 'write' | 'readWrite';

/** `rangeEnd` as in a RangeRequest: '' is one key, '\0' every key >= key. */
export interface Permission {
  readonly type: PermissionType;
  readonly key: string;
  readonly rangeEnd: string;
}

export interface User {
  readonly name: string;
  /** As the server made it, opaque here; '' for a user who cannot log in with a password. */
  readonly passwordHash: string;
  /** Created without a password: the user is identified by a certificate only. */
  readonly noPassword: boolean;
  /** Sorted. */
  readonly roles: readonly string[];
  /** The auth revision at which the user was created or the password changed: older tokens are invalid. */
  readonly since: number;
}

export interface Role {
  readonly name: string;
  /** Sorted by key, and for the same key in the order of granting; each range once. */
  readonly permissions: readonly Permission[];
}

/** Every change of the auth data. The server that proposes a change has hashed the password in it. */
export type AuthChange =
  | { readonly kind: 'enable' }
  | { readonly kind: 'disable' }
  | {
      readonly kind: 'addUser';
      readonly user: string;
      readonly passwordHash: string;
      readonly noPassword: boolean;
    }
  | { readonly kind: 'deleteUser'; readonly user: string }
  | { readonly kind: 'changePassword'; readonly user: string; readonly passwordHash: string }
  | { readonly kind: 'grantRole'; readonly user: string; readonly role: string }
  | { readonly kind: 'revokeRole'; readonly user: string; readonly role: string }
  | { readonly kind: 'addRole'; readonly role: string }
  | { readonly kind: 'deleteRole'; readonly role: string }
  | { readonly kind: 'grantPermission'; readonly role: string; readonly permission: Permission }
  | {
      readonly kind: 'revokePermission';
      readonly role: string;
      readonly key: string;
      readonly rangeEnd: string;
    }
  /**
   * A server has checked the password of the user, by the auth data of `authRevision`, and issues a token. The token
   * itself is not in the log: each server keeps its digest in memory.
   */
  | {
      readonly kind: 'issueToken';
      readonly user: string;
      readonly tokenDigest: string;
      readonly authRevision: number;
    }
  /** The operator, who holds the log, sets the password of root and makes sure that root has the role root. */
  | { readonly kind: 'recoverRoot'; readonly passwordHash: string };
