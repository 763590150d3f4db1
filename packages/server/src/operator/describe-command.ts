import type { AuthChange, Command } from '@tenure/core';

/** The number of list items shown before 'and N more'. */
const maxShown = 8;

/** A command of the log on one line. Values are left out: a dump may be shared in a support request. */
export function describeCommand(command: Command): string {
  const description = describeBody(command);
  return command.by === undefined ? description : `${description} by ${JSON.stringify(command.by.user)}`;
}

function describeBody(command: Command): string {
  switch (command.kind) {
    case 'put': {
      const { key, value, lease } = command.put;
      return `put ${quote(key)} (${value.length} bytes)${lease === 0n ? '' : ` lease ${hex(lease)}`}`;
    }
    case 'deleteRange': {
      const { key, rangeEnd } = command.deleteRange;
      return `deleteRange ${quote(key)}${rangeEnd === '' ? '' : ` to ${quote(rangeEnd)}`}`;
    }
    case 'txn': {
      const { compare, success, failure } = command.txn;
      return `txn of ${compare.length} compares, ${success.length} operations then, ${failure.length} else`;
    }
    case 'compact':
      return `compact to revision ${command.revision}`;
    case 'leaseGrant': {
      const { id, ttlMs, label } = command;
      return `leaseGrant ${hex(id)} of ${ttlMs} ms${label === '' ? '' : ` ${JSON.stringify(label)}`}`;
    }
    case 'leaseRevoke':
      return `leaseRevoke ${hex(command.id)}`;
    case 'expireLeases':
      return `expireLeases ${list(command.leases, ({ id, renewIndex }) => `${hex(id)}@${renewIndex}`)}`;
    case 'checkpointLeases':
      return `checkpointLeases ${list(command.leases, ({ id, deadlineMs }) => `${hex(id)} until ${deadlineMs} ms`)}`;
    case 'renewLeases':
      return `renewLeases ${list(command.ids, hex)}`;
    case 'claim':
      return `claim of epoch ${command.epoch} by ${command.leader} for ${command.leaderLeaseMs} ms`;
    case 'heartbeat':
      return 'heartbeat';
    case 'createCluster':
      return `createCluster ${hex(command.clusterId)}`;
    case 'resign':
      return `resign to ${hex(command.target)}`;
    case 'removeMember':
      return `removeMember ${hex(command.id)}`;
    case 'registerMember': {
      const { id, name, clientUrls, peerUrls = [] } = command;
      const forServers = peerUrls.length === 0 ? '' : `, for servers at ${peerUrls.join(',')}`;
      return `registerMember ${hex(id)} ${JSON.stringify(name)} at ${clientUrls.join(',')}${forServers}`;
    }
    case 'setTxnLimits':
      return `setTxnLimits ${Object.entries(command.limits)
        .map(([name, limit]) => `${name} ${limit}`)
        .join(', ')}`;
    case 'alarm':
      return `alarm ${command.action} ${command.alarm} of member ${hex(command.memberId)}`;
    case 'auth':
      return `auth ${describeChange(command.change)}`;
  }
}

/** Without password hashes and digests of tokens. */
function describeChange(change: AuthChange): string {
  switch (change.kind) {
    case 'grantPermission': {
      const { type, key, rangeEnd } = change.permission;
      return `${change.kind} ${type} of ${quote(key)} to ${quote(rangeEnd)} to role ${JSON.stringify(change.role)}`;
    }
    case 'revokePermission': {
      const { role, key, rangeEnd } = change;
      return `${change.kind} of ${quote(key)} to ${quote(rangeEnd)} from role ${JSON.stringify(role)}`;
    }
    default: {
      const user = 'user' in change ? ` user ${JSON.stringify(change.user)}` : '';
      return `${change.kind}${user}${'role' in change ? ` role ${JSON.stringify(change.role)}` : ''}`;
    }
  }
}

function list<T>(items: readonly T[], show: (item: T) => string): string {
  const more = items.length > maxShown ? `, and ${items.length - maxShown} more` : '';
  return items.slice(0, maxShown).map(show).join(', ') + more;
}

function hex(id: bigint): string {
  return BigInt.asUintN(64, id).toString(16).padStart(16, '0');
}

// Keys are latin1 strings inside; they are shown as UTF-8, which they usually are, with control characters escaped.
function quote(bytes: string): string {
  return JSON.stringify(Buffer.from(bytes, 'latin1').toString('utf8'));
}
