import type { Scenario } from '../scenario.ts';
import { emptyStart } from './empty-start.ts';
import { expiryBurst } from './expiry-burst.ts';
import { expiryLag } from './expiry-lag.ts';
import { keepAlive } from './keep-alive.ts';
import { keepAliveStreams } from './keep-alive-streams.ts';
import { leaseGrant } from './lease-grant.ts';
import { longLists } from './long-lists.ts';
import { millionLeases } from './million-leases.ts';
import { putDurable } from './put-durable.ts';
import { putVaried } from './put-varied.ts';
import { rangeLargeWhileWriting } from './range-5mb-while-writing.ts';
import { rangeOneKey } from './range-one-key.ts';
import { rangeThousandKeys } from './range-thousand-keys.ts';
import { snapshotPause } from './snapshot-pause.ts';
import { stm } from './stm.ts';
import { streamBurst } from './stream-burst.ts';
import { txnPuts } from './txn-puts.ts';
import { unreadHttp } from './unread-http.ts';
import { unreadReplies } from './unread-replies.ts';
import { watchCreate } from './watch-create.ts';
import { watchFanout } from './watch-fanout.ts';
import { watchLargeReads } from './watch-large-reads.ts';

/** In the order of the table. */
export const allScenarios: readonly Scenario[] = [
  putDurable,
  putVaried,
  rangeOneKey('linearizable', 2.5),
  rangeOneKey('serializable', 2),
  rangeThousandKeys,
  rangeLargeWhileWriting,
  leaseGrant,
  keepAliveStreams,
  keepAlive,
  txnPuts,
  stm,
  watchCreate,
  watchFanout,
  expiryBurst,
  expiryLag,
  millionLeases,
  emptyStart,
  snapshotPause,
  longLists,
  watchLargeReads,
  unreadReplies,
  unreadHttp,
  streamBurst,
];
