import { eventually, type Cluster } from '../cluster/cluster.ts';

/** Transfers leadership to a follower, and resolves when another epoch has begun under any leader. */
export async function moveLeader(cluster: Cluster): Promise<void> {
  const old = await eventually('the leader transfers leadership', async () => {
    const leader = await cluster.leader();
    const { epoch } = await leader.leadership();
    const follower = cluster.members.find((member) => member !== leader);
    if (follower === undefined) throw new Error('there is no follower to transfer leadership to');
    const { header } = await follower.maintenance.status({});
    await leader.maintenance.moveLeader({ targetID: header?.memberId ?? 0n });
    return epoch;
  });
  await eventually('another epoch begins', async () => {
    const { epoch } = await (await cluster.leader()).leadership();
    return epoch > old ? true : undefined;
  });
}
