import { LeadershipDriver } from '../../leadership/leadership-driver.ts';
import { Leadership } from '../../leadership/leadership.ts';
import { noChance } from '../../random/testing/no-chance.ts';
import { systemClock } from '../../time/system-clock.ts';
import type { ReplicaOptions } from '../replica-options.ts';
import type { ReplicaPair, WiredReplica } from './replica-pair.ts';

export interface LeadingReplica {
  readonly leader: WiredReplica;
  readonly driver: LeadershipDriver;
  /** The renewals that its lessor has carried out. */
  readonly renewals: () => number;
}

/** A replica that leads under a real leadership, whose timers never fire during a test. */
export async function leadingReplica(pair: ReplicaPair): Promise<LeadingReplica> {
  let renewals = 0;
  let driver: LeadershipDriver | undefined;
  let leadership!: Leadership;
  const leader = await pair.join((state) => {
    leadership = new Leadership({
      clock: systemClock,
      random: noChance,
      state,
      isShared: true,
      metrics: { leaseExpired: () => {}, leaseRenewed: (count = 1) => (renewals += count) },
      memberId: 1n,
      leaderId: 'a',
      heartbeatIntervalMs: 60_000,
      electionTimeoutMs: 60_000,
      leaderLeaseMs: 60_000,
    });
    const onFact: ReplicaOptions['onFact'] = (fact) => {
      if (fact.kind === 'applied' || fact.kind === 'appended' || fact.kind === 'deposed') driver?.tell(fact);
    };
    return { authority: leadership, onFact };
  });
  return new Promise((resolve, reject) => {
    const { replica } = leader;
    const leads = new LeadershipDriver({
      leadership,
      replica,
      clock: systemClock,
      onChange: () => resolve({ leader, driver: leads, renewals: () => renewals }),
      onFailed: reject,
    });
    driver = leads;
    void leads.claimNow();
  });
}
