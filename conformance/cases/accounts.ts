import { authpb } from '@tenure/protocol';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { RunningServer, ServerOptions } from '../servers/server-options.ts';
import { bytes } from './bytes.ts';
import { CaseContext } from './case-context.ts';

export const rootPassword = 'root';
export const { READ, WRITE, READWRITE } = authpb.Permission_Type;

const typeNames: Readonly<Record<number, string>> = { [READ]: 'READ', [WRITE]: 'WRITE', [READWRITE]: 'READWRITE' };

export type Permission = MessageInitShape<typeof authpb.PermissionSchema>;

/** Cheap to compute, as the cases log in hundreds of times. */
const bcryptCost = 4;
/** Groups with one of these share its server, where auth is off at the start of each case, or on. */
export const authOff: ServerOptions = { bcryptCost };
export const authOn: ServerOptions = { bcryptCost };

export async function enableAuth(server: RunningServer): Promise<void> {
  const t = new CaseContext(server, '');
  await t.auth.userAdd({ name: 'root', password: rootPassword });
  await t.auth.userGrantRole({ user: 'root', role: 'root' });
  await t.auth.authEnable({});
  t.client.close();
}

/** The context of a case whose calls come from root, with a token of its own. */
export async function rootContext(server: RunningServer, prefix: string): Promise<CaseContext> {
  const stranger = new CaseContext(server, prefix);
  const token = await logIn(stranger, 'root', rootPassword);
  stranger.client.close();
  return new CaseContext(server, prefix, { token });
}

/** A new token of the user. */
export async function logIn(t: CaseContext, name: string, password = name): Promise<string> {
  return (await t.auth.authenticate({ name, password })).token;
}

/** A name of a user or role that no other case uses. */
export function nameIn(t: CaseContext, name: string): string {
  return Buffer.from(t.key(name)).toString('latin1');
}

/** Adds a user whose name is its password, and removes it when the case ends. */
export async function addUser(root: CaseContext, name: string): Promise<void> {
  root.cleanUp(() => root.auth.userDelete({ name }).catch(() => undefined));
  await root.auth.userAdd({ name, password: name });
}

/** Adds a role with these permissions, in this order, and removes it when the case ends. */
export async function addRole(root: CaseContext, name: string, ...permissions: Permission[]): Promise<void> {
  root.cleanUp(() => root.auth.roleDelete({ role: name }).catch(() => undefined));
  await root.auth.roleAdd({ name });
  for (const perm of permissions) await root.auth.roleGrantPermission({ name, perm });
}

/**
 * A new user with a role of the same name, as the caller of the returned context. Both are gone when the case ends.
 * `name` is made one of this case's own.
 */
export async function userWith(root: CaseContext, name: string, ...permissions: Permission[]): Promise<CaseContext> {
  const full = nameIn(root, name);
  await addUser(root, full);
  await addRole(root, full, ...permissions);
  await root.auth.userGrantRole({ user: full, role: full });
  return root.as({ token: await logIn(root, full) });
}

/** A permission for one key of this case, or for a range of its keys. */
export function permit(t: CaseContext, permType: authpb.Permission_Type, key: string, end?: string): Permission {
  return { permType, key: t.key(key), ...(end === undefined ? {} : { rangeEnd: t.key(end) }) };
}

/** A permission for keys as they are, whosever they are. */
export function permitExactly(permType: authpb.Permission_Type, key: string, end = ''): Permission {
  return { permType, key: bytes(key), rangeEnd: bytes(end) };
}

/** 'READ a-b' for each, with the keys by their names in this case. */
export function permissionsOf(t: CaseContext, permissions: readonly authpb.Permission[]): string[] {
  return permissions.map(({ permType, key, rangeEnd }) => {
    const end = rangeEnd.length === 0 ? '' : `-${t.nameOf(rangeEnd)}`;
    return `${typeNames[permType] ?? permType} ${t.nameOf(key)}${end}`;
  });
}

/** How much the revision of the auth store grows by some calls. The caller must be root, or auth off. */
export async function authRevisionsBy(t: CaseContext, change: () => Promise<unknown>): Promise<bigint> {
  const before = (await t.auth.authStatus({})).authRevision;
  await change();
  return (await t.auth.authStatus({})).authRevision - before;
}
