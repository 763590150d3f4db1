import { leaseGrantRequest, leaseReply, methods, putRequest } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';

const sizes = { connections: 4, streamsPerConnection: 100 };

/** Grants the leases `first` to `last` by id, and checks that each reply has the requested id and TTL. */
export async function grantLeases(
  server: Pick<MeasuredServer, 'address'>,
  { first = 1, last, ttlSeconds }: { first?: number; last: number; ttlSeconds: number },
): Promise<void> {
  await runFrameLoad({
    ...sizes,
    address: server.address,
    path: methods.leaseGrant,
    requests: last - first + 1,
    framedRequest: (index) => frame(leaseGrantRequest(ttlSeconds, first + index)),
    onReply: (index, message) => {
      const { id, ttlSeconds: granted } = leaseReply(message);
      if (id !== first + index || granted !== ttlSeconds) {
        throw new Error(`lease ${first + index} of ${ttlSeconds} s was answered with lease ${id} of ${granted} s`);
      }
    },
  });
}

/** Puts one key for each of the leases 1 to `count`, attached to it. */
export async function attachKeys(server: MeasuredServer, count: number): Promise<void> {
  await runFrameLoad({
    ...sizes,
    address: server.address,
    path: methods.put,
    requests: count,
    framedRequest: (index) => frame(putRequest(leaseKey(index + 1), 'alive', index + 1)),
  });
}

const leaseKeyPrefix = 'lease/';

export function leaseKey(id: number): string {
  return `${leaseKeyPrefix}${String(id).padStart(8, '0')}`;
}

export function leaseOfKey(key: string): number {
  return Number(key.slice(leaseKeyPrefix.length));
}

/** The range of all keys of leases, for a watch. */
export const leaseKeys = { key: leaseKeyPrefix, rangeEnd: 'lease0' };
