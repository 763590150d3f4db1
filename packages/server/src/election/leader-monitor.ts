import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

export interface LeaderMonitorOptions {
  readonly clock: Clock;
  readonly electionTimeoutMs: number;
  /** Whether this server leads, or hears of a leader and can reach it. */
  readonly hasLeader: () => boolean;
  /** There has been no leader for too long. Told again at each look for as long as that is so. */
  readonly onLost: () => void;
}

/**
 * Streams outlive a change of leader: to connect again costs much more than to wait. So a server lets them stand for
 * as many election timeouts without a leader as etcd does, and then ends them.
 */
const lostAfterElectionTimeouts = 3;
const looksPerElectionTimeout = 4;

/**
 * Notices that there has been no leader for some election timeouts. Looks are counted, not time: a process that stood
 * still has looked once when it wakes, and hears of its leader before it looks again.
 */
export class LeaderMonitor {
  readonly #options: LeaderMonitorOptions;
  #inVain = 0;
  readonly #cancel: () => void;

  constructor(options: LeaderMonitorOptions) {
    this.#options = options;
    const { clock, electionTimeoutMs } = options;
    this.#cancel = every(clock, electionTimeoutMs / looksPerElectionTimeout, () => this.#look());
  }

  /** Whether there has been no leader for too long, at the last look. */
  get isLost(): boolean {
    return this.#inVain >= lostAfterElectionTimeouts * looksPerElectionTimeout;
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const { hasLeader, onLost } = this.#options;
    this.#inVain = hasLeader() ? 0 : this.#inVain + 1;
    if (this.isLost) onLost();
  }
}
