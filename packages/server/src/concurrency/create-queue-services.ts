import { CallLimit } from './call-limit.ts';
import { ElectionService } from './election-service.ts';
import { LocalClient, type LocalClientOptions } from './local-client.ts';
import { LockService } from './lock-service.ts';
import { QueuePlaces } from './queue-place.ts';

/** The limits of one server on calls that may stay open for as long as their clients like. */
export interface QueueLimits {
  /** Calls of Lock and Campaign, each of which may wait. */
  readonly maxWaitingCalls: number;
  /** Calls of Observe. */
  readonly maxObservers: number;
}

const defaultQueueLimits: QueueLimits = { maxWaitingCalls: 10_000, maxObservers: 10_000 };

export interface QueueServices {
  readonly lock: LockService;
  readonly election: ElectionService;
}

/** Lock and Election: one queue each for a name, the same if the names are the same. */
export function createQueueServices(options: LocalClientOptions, limits: Partial<QueueLimits> = {}): QueueServices {
  const { maxWaitingCalls, maxObservers } = { ...defaultQueueLimits, ...limits };
  const client = new LocalClient(options);
  const places = new QueuePlaces(client);
  const limit = new CallLimit(maxWaitingCalls, 'calls of Lock and Campaign');
  const observers = new CallLimit(maxObservers, 'calls of Observe');
  return {
    lock: new LockService({ client, places, limit }),
    election: new ElectionService({ client, places, limit, observers }),
  };
}
