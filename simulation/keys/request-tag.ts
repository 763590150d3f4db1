import type { Command, Compare } from '@tenure/core';

/**
 * Each write of the simulated clients has a tag, like `3.17`, that no other write has and that stays in it in the log:
 * so the log tells which write took effect, and how often. A put has it in its value, a deletion in the end of its
 * range, a transaction in a comparison that always holds.
 */
const tagPrefix = 'tag/';

/** Clients of keys grant each id once, from this one on. Lower ids belong to clients that use an id again and again. */
export function firstLeaseId(client: number): bigint {
  return BigInt(client) * 1_000_000n;
}

function isOfKeys(id: bigint): boolean {
  return id >= firstLeaseId(1) || id <= -firstLeaseId(1);
}

/** The key exists in no history, so its version is 0. */
export function taggedCompare(tag: string): Compare {
  return { result: 0, target: 0, key: `${tagPrefix}${tag}`, rangeEnd: '', number: 0, value: '', lease: 0n };
}

/** A range of this key alone, since no key has a zero byte. */
export function taggedRangeEnd(key: string, tag: string): string {
  return `${key}\0${tag}`;
}

/** `rest` tells apart the values of one write. */
export function taggedValue(tag: string, rest: string): string {
  return `${tag}:${rest}`;
}

/** Undefined for commands of the servers and for compactions, which may be requested repeatedly. */
export function tagOfCommand(command: Command): string | undefined {
  switch (command.kind) {
    case 'put':
      return before(command.put.value, ':');
    case 'deleteRange':
      return after(command.deleteRange.rangeEnd, '\0');
    case 'txn': {
      const key = command.txn.compare[0]?.key ?? '';
      return key.startsWith(tagPrefix) ? key.slice(tagPrefix.length) : undefined;
    }
    case 'leaseGrant':
      return isOfKeys(command.id) ? `grant ${command.id}` : undefined;
    case 'leaseRevoke':
      return isOfKeys(command.id) ? `revoke ${command.id}` : undefined;
    default:
      return undefined;
  }
}

function before(text: string, mark: string): string | undefined {
  const at = text.indexOf(mark);
  return at === -1 ? undefined : text.slice(0, at);
}

function after(text: string, mark: string): string | undefined {
  const at = text.indexOf(mark);
  return at === -1 || at === text.length - 1 ? undefined : text.slice(at + 1);
}
