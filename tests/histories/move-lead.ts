import { eventually, type Cluster } from '../cluster/cluster.ts';

/** Hands the lead to one of the servers that follow, and resolves when another epoch has begun, whoever leads in it. */
export async function moveLead(cluster: Cluster): Promise<void> {
  const old = await eventually('the leader hands on the lead', async () => {
    const leader = await cluster.leader();
    const { epoch } = await leader.leadership();
    const follower = cluster.members.find((member) => member !== leader);
    if (follower === undefined) throw new Error('there is nobody to hand the lead to');
    const { header } = await follower.maintenance.status({});
    await leader.maintenance.moveLeader({ targetID: header?.memberId ?? 0n });
    return epoch;
  });
  await eventually('another epoch begins', async () => {
    const { epoch } = await (await cluster.leader()).leadership();
    return epoch > old ? true : undefined;
  });
}
