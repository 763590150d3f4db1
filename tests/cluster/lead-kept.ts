import { expect } from 'vitest';
import type { ClusterMember } from './cluster-member.ts';

/** The earliest claim of a server after it last heard from the leader. */
const electionTimeoutMs = 1_000;

/** It still leads, unless an overloaded machine delayed the servers so long that they considered it dead. */
export async function expectLeadKept(leader: ClusterMember, epoch: bigint, owedMs: number): Promise<void> {
  const now = await leader.leadership();
  if (!now.leads || now.epoch !== epoch) expect(owedMs, 'leadership was lost').toBeGreaterThan(electionTimeoutMs / 2);
}
