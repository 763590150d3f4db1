import { authpb } from '@tenure/protocol';
import { keyRange } from '../key-range.ts';

const { Permission_Type: Type } = authpb;

/** The permissions of a role, as etcdctl shows them. */
export function permissionLines(role: string, permissions: readonly authpb.Permission[]): string[] {
  const kinds = [
    { title: 'KV Read:', types: [Type.READ, Type.READWRITE] },
    { title: 'KV Write:', types: [Type.WRITE, Type.READWRITE] },
  ];
  const sections = kinds.map(({ title, types }) => {
    const allowed = permissions.filter(({ permType }) => types.some((type) => type === permType));
    return [title, ...allowed.map((permission) => `\t${rangeText(permission)}`)];
  });
  return [`Role ${role}`, ...sections.flat()];
}

function rangeText({ key, rangeEnd }: authpb.Permission): string {
  const start = Buffer.from(key).toString();
  if (rangeEnd.length === 0) return start;
  const range = rangeWords({ key, rangeEnd });
  const isPrefix =
    !isOpen(rangeEnd) && Buffer.from(keyRange(start, undefined, { prefix: true }).rangeEnd).equals(rangeEnd);
  return isPrefix ? `${range} (prefix ${start})` : range;
}

/** etcdctl closes no bracket after a range without an end. */
export function rangeWords({ key, rangeEnd }: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array }): string {
  const start = Buffer.from(key).toString();
  return isOpen(rangeEnd) ? `[${start}, <open ended>` : `[${start}, ${Buffer.from(rangeEnd).toString()})`;
}

function isOpen(rangeEnd: Uint8Array): boolean {
  return rangeEnd.length === 1 && rangeEnd[0] === 0;
}
