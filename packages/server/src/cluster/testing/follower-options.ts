import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';
import { GrpcLeaderStream } from '../follower/grpc-leader-stream.ts';
import type { LeaderConnectionOptions } from '../follower/leader-connection.ts';

/** A follower's side of a stream to the leader, with no-ops for the options that are not given. */
export function followerOptions(given: Partial<LeaderConnectionOptions>): LeaderConnectionOptions {
  return {
    clock: systemClock,
    random: systemRandom,
    open: (url, listener) => new GrpcLeaderStream(url, listener),
    url: 'http://127.0.0.1:0',
    epoch: 1,
    memberId: 2n,
    run: 5,
    leader: '1/1',
    clusterId: 1n,
    secret: 'known to the servers',
    appliedIndex: () => 0,
    onWelcome: () => {},
    onRenewed: () => {},
    onRenewalRefused: () => {},
    onReturned: () => {},
    onRefused: () => {},
    onAppended: () => {},
    onView: () => {},
    onClosed: () => {},
    ...given,
  };
}
