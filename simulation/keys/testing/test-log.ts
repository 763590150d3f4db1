import type { Command } from '@tenure/core';
import { logStart, nextPosition } from '../../../packages/server/src/engines/chain-hash.ts';
import type { LoggedEntry } from '../../../packages/server/src/engines/log-engine.ts';
import { encodeCommand } from '../../../packages/server/src/replica/command-codec.ts';
import { encodeEntry } from '../../../packages/server/src/replica/entry-codec.ts';
import { taggedCompare, taggedRangeEnd, taggedValue } from '../request-tag.ts';

/** A log that a test writes, entry by entry, in epoch 1. */
export class TestLog {
  #position = logStart;
  readonly #onEntry: (entry: LoggedEntry) => void;

  constructor(onEntry: (entry: LoggedEntry) => void) {
    this.#onEntry = onEntry;
    this.append({ kind: 'claim', epoch: 1, leader: '1/1', leaderLeaseMs: 800 });
  }

  /** One entry with these commands. */
  append(...commands: readonly Command[]): void {
    const bytes = encodeEntry(
      { epoch: 1, timeMs: 1 },
      commands.map((command) => encodeCommand(command)),
    );
    this.#position = nextPosition(this.#position, bytes);
    this.#onEntry({ position: this.#position, bytes });
  }
}

export function putOf(tag: string, key: string, lease = 0n): Extract<Command, { kind: 'put' }> {
  const put = { key, value: taggedValue(tag, '0'), lease, prevKv: true, ignoreValue: false, ignoreLease: false };
  return { kind: 'put', put };
}

export function deleteOf(tag: string, key: string): Extract<Command, { kind: 'deleteRange' }> {
  return { kind: 'deleteRange', deleteRange: { key, rangeEnd: taggedRangeEnd(key, tag), prevKv: true } };
}

/** One transaction that puts all keys. */
export function putsOf(tag: string, keys: readonly string[]): Extract<Command, { kind: 'txn' }> {
  const success = keys.map((key) => ({ kind: 'put', put: putOf(tag, key).put }) as const);
  return { kind: 'txn', txn: { compare: [taggedCompare(tag)], success, failure: [] } };
}

export function grantOf(id: bigint): Extract<Command, { kind: 'leaseGrant' }> {
  return { kind: 'leaseGrant', id, ttlMs: 1_000, label: '' };
}
