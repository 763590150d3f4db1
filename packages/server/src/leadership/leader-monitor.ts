import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

export interface LeaderMonitorOptions {
  readonly clock: Clock;
  readonly electionTimeoutMs: number;
  /** Whether this server leads, or follows a leader that it can reach. */
  readonly hasLeader: () => boolean;
  /** There has been no leader for too long. Called at each check for as long as that holds. */
  readonly onLost: () => void;
}

/**
 * Streams survive a change of leader, because a new connection costs a client much more than a wait. A server keeps
 * them for as many election timeouts without a leader as etcd does, and then ends them.
 */
const lostAfterElectionTimeouts = 3;
const checksPerElectionTimeout = 4;

/**
 * Detects that there has been no leader for several election timeouts. It counts checks, not time: a process that was
 * suspended runs one check when it resumes, and hears of its leader before the next.
 */
export class LeaderMonitor {
  readonly #options: LeaderMonitorOptions;
  #checksWithoutLeader = 0;
  readonly #cancel: () => void;

  constructor(options: LeaderMonitorOptions) {
    this.#options = options;
    const { clock, electionTimeoutMs } = options;
    this.#cancel = every(clock, electionTimeoutMs / checksPerElectionTimeout, () => this.#check());
  }

  /** Whether there has been no leader for too long, at the last check. */
  get isLost(): boolean {
    return this.#checksWithoutLeader >= lostAfterElectionTimeouts * checksPerElectionTimeout;
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const { hasLeader, onLost } = this.#options;
    this.#checksWithoutLeader = hasLeader() ? 0 : this.#checksWithoutLeader + 1;
    if (this.isLost) onLost();
  }
}
