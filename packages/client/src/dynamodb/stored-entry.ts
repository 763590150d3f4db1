import type { Claim, Entry, EntryMode } from '../backend/lease-backend.ts';
import type { DynamoItem, DynamoValue } from './dynamo-client.ts';

/** An entry as stored in an item. `beat` is random and new with each renewal. */
export interface StoredEntry extends Omit<Entry, 'expiresInMs'> {
  readonly beat: string;
}

export function encodeEntry(claim: Claim, beat: string): Readonly<Record<string, DynamoValue>> {
  return {
    holder: { S: claim.holder },
    mode: { S: claim.mode },
    permits: { N: `${claim.permits}` },
    ttl: { N: `${claim.ttlMs}` },
    data: { S: claim.data },
    beat: { S: beat },
  };
}

/** The entries in the item of a queue, with their sequence numbers. */
export function entriesOfQueue(name: string, item: DynamoItem | undefined): readonly StoredEntry[] {
  const { line, tickets } = item ?? {};
  return Object.entries(line?.M ?? {}).map(([id, entry]) =>
    decodeEntry({ name, id, sequence: BigInt(tickets?.M?.[id]?.N ?? 0) }, entry.M ?? {}),
  );
}

/** A member has an item of its own. */
export function entryOfMember(name: string, id: string, item: DynamoItem): StoredEntry {
  return decodeEntry({ name, id, sequence: BigInt(item['ticket']?.N ?? 0) }, item);
}

function decodeEntry(key: Pick<Entry, 'name' | 'id' | 'sequence'>, fields: DynamoItem): StoredEntry {
  return {
    ...key,
    holder: fields['holder']?.S ?? '',
    mode: (fields['mode']?.S ?? 'exclusive') as EntryMode,
    permits: Number(fields['permits']?.N ?? 1),
    ttlMs: Number(fields['ttl']?.N ?? 0),
    data: fields['data']?.S ?? '',
    beat: fields['beat']?.S ?? '',
  };
}
