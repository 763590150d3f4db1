import type { Claim, Entry, EntryMode } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { KeyValue } from './client/key-value.ts';

type StoredFields = Pick<Claim, 'holder' | 'mode' | 'permits' | 'ttlMs' | 'data'>;

const modes: readonly unknown[] = ['exclusive', 'shared', 'permit', 'member'] satisfies EntryMode[];

/** The value of an entry's key: JSON, so that people can read it with other tools. */
export function encodeEntry({ holder, mode, permits, ttlMs, data }: StoredFields): string {
  return JSON.stringify({ holder, mode, permits, ttlMs, data });
}

/** Throws BackendError `misconfigured` for a key that is not an entry: another program writes under this prefix. */
export function entryOf(name: string, queuePrefix: string, kv: KeyValue): Entry {
  const value = parse(kv.value);
  if (value === undefined) {
    const message = `the key ${kv.key} is not an entry of a lease: choose a prefix that no other program uses`;
    throw new BackendError('etcd', 'misconfigured', message);
  }
  const { holder, mode, permits, ttlMs, data } = value;
  const id = kv.key.slice(queuePrefix.length);
  return { name, id, sequence: kv.createRevision, holder, mode, permits, ttlMs, data, expiresInMs: undefined };
}

function parse(text: string): StoredFields | undefined {
  try {
    const value = JSON.parse(text) as StoredFields;
    return modes.includes(value.mode) ? value : undefined;
  } catch {
    return undefined;
  }
}
