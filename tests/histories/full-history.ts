import { mvccpb } from '@tenure/protocol';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { HistoryLog, type HistoryEvent } from './history-log.ts';
import { keyVersion } from './kv-client.ts';

/** All events of the store from its first revision up to `last`, from a watch of this server. */
export async function readFullHistory(member: ClusterMember, last: number): Promise<HistoryLog> {
  const stream = new WatchStream(member.client);
  const all = Buffer.alloc(1);
  const events: HistoryEvent[] = [];
  try {
    const { watchId, canceled, cancelReason } = await stream.create({ key: all, rangeEnd: all, startRevision: 1n });
    if (canceled) throw new Error(`the history cannot be read: ${cancelReason}`);
    while ((events.at(-1)?.revision ?? 1) < last) {
      const reply = await stream.next(watchId);
      if (reply.canceled) throw new Error(`the watch has ended: ${reply.cancelReason}`);
      events.push(...reply.events.map(historyEvent));
    }
  } finally {
    stream.close();
  }
  return new HistoryLog(events.filter(({ revision }) => revision <= last));
}

function historyEvent({ kv, type }: mvccpb.Event): HistoryEvent {
  if (kv === undefined) throw new Error('an event came without a key');
  return {
    revision: Number(kv.modRevision),
    key: Buffer.from(kv.key).toString(),
    version: type === mvccpb.Event_EventType.PUT ? keyVersion(kv) : undefined,
  };
}
