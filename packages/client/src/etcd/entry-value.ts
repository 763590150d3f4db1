import type { Claim, Entry, EntryMode } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { KeyValue } from './client/key-value.ts';

type Told = Pick<Claim, 'holder' | 'mode' | 'permits' | 'ttlMs' | 'data'>;

const modes: readonly unknown[] = ['exclusive', 'shared', 'permit', 'member'] satisfies EntryMode[];

/** What stands in the value of an entry's key: JSON, for people who look with other tools. */
export function encodeEntry({ holder, mode, permits, ttlMs, data }: Told): string {
  return JSON.stringify({ holder, mode, permits, ttlMs, data });
}

/** Throws BackendError `misconfigured` for a key that is no entry: something else writes under this prefix. */
export function entryOf(name: string, linePrefix: string, kv: KeyValue): Entry {
  const value = parse(kv.value);
  if (value === undefined) {
    const message = `the key ${kv.key} is no entry of a lease: choose a prefix that nothing else writes to`;
    throw new BackendError('etcd', 'misconfigured', message);
  }
  const { holder, mode, permits, ttlMs, data } = value;
  const id = kv.key.slice(linePrefix.length);
  return { name, id, ticket: kv.createRevision, holder, mode, permits, ttlMs, data, expiresInMs: undefined };
}

function parse(text: string): Told | undefined {
  try {
    const value = JSON.parse(text) as Told;
    return modes.includes(value.mode) ? value : undefined;
  } catch {
    return undefined;
  }
}
