import { alarms } from './alarms.ts';
import { authAccounts, authEnabling } from './auth-enabling.ts';
import { authKeys, authTxn } from './auth-keys.ts';
import { authLeases } from './auth-leases.ts';
import { authQueues } from './auth-queues.ts';
import { authRanges } from './auth-ranges.ts';
import { authRoles } from './auth-roles.ts';
import { authJwt, authTokenLife, authTokens } from './auth-tokens.ts';
import { authUsers } from './auth-users.ts';
import { authWatch } from './auth-watch.ts';
import { calls } from './calls.ts';
import type { CaseGroup } from './case.ts';
import { cluster } from './cluster.ts';
import { electionService } from './election.ts';
import { kvCompact, kvCompactFromTheStart } from './kv-compact.ts';
import { kvDelete } from './kv-delete.ts';
import { kvPut } from './kv-put.ts';
import { kvRangeOrder } from './kv-range-order.ts';
import { kvRangePast } from './kv-range-past.ts';
import { kvRange } from './kv-range.ts';
import { kvTxnCompare } from './kv-txn-compare.ts';
import { kvTxnRefusals } from './kv-txn-refusals.ts';
import { kvTxn } from './kv-txn.ts';
import { leaseExpiry } from './lease-expiry.ts';
import { leaseGrant } from './lease-grant.ts';
import { leaseKeepAlive } from './lease-keepalive.ts';
import { leaseLeases, leaseTimeToLive } from './lease-listing.ts';
import { leaseRevoke } from './lease-revoke.ts';
import { chosenLimits, defaultLimits, tinyLimit } from './limits.ts';
import { lockService } from './lock.ts';
import { maintenance } from './maintenance.ts';
import { membership } from './membership.ts';
import { noSpace } from './no-space.ts';
import { watchControl, watchProgressInterval } from './watch-control.ts';
import { watchCreate } from './watch-create.ts';
import { watchEvents } from './watch-events.ts';
import { watchFragment } from './watch-fragment.ts';
import { watchSlow } from './watch-slow.ts';
import { watchStart } from './watch-start.ts';
import { wireFaults } from './wire-faults.ts';
import { wire } from './wire.ts';

/** All cases, in the order in which they start: those with the longest waits first. */
export const caseGroups: readonly CaseGroup[] = [
  leaseExpiry,
  authTokenLife,
  authJwt,
  kvRange,
  kvRangeOrder,
  kvRangePast,
  kvPut,
  kvDelete,
  kvTxn,
  kvTxnCompare,
  kvTxnRefusals,
  kvCompact,
  kvCompactFromTheStart,
  watchCreate,
  watchStart,
  watchEvents,
  watchControl,
  watchProgressInterval,
  watchFragment,
  watchSlow,
  leaseGrant,
  leaseRevoke,
  leaseKeepAlive,
  leaseTimeToLive,
  leaseLeases,
  lockService,
  electionService,
  maintenance,
  alarms,
  noSpace,
  cluster,
  membership,
  authAccounts,
  authEnabling,
  authUsers,
  authRoles,
  authRanges,
  authKeys,
  authTxn,
  authLeases,
  authWatch,
  authQueues,
  authTokens,
  defaultLimits,
  chosenLimits,
  tinyLimit,
  wire,
  wireFaults,
  calls,
];
