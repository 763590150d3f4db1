import type { AcknowledgedWrite } from '../crash/writer.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { LastingWatch } from './lasting-watch.ts';

/** The longest delay of a watch's events. */
const patienceMs = 30_000;

/**
 * What must hold after any sequence of faults, once no client writes any more. Throws unless
 *
 * - the state of all servers is the same at the same revision;
 * - each lasting watch, wherever it continued after its server died, has seen every event once, in order, and every
 * acknowledged write at its revision;
 * - each running server reports the same history to a watch from the beginning;
 * - and the keys are the result of that history.
 */
export async function checkAfterwards(
  cluster: Cluster,
  watches: readonly LastingWatch[],
  acknowledged: readonly AcknowledgedWrite[],
): Promise<void> {
  const leader = await cluster.leader();
  const last = await leader.put('last', `${performance.now()}`);
  const fresh = cluster.members.map((member) => new LastingWatch(() => [member], 0));
  try {
    const histories: string[] = [];
    for (const watch of [...watches, ...fresh]) {
      await watch.seen(({ revision }) => revision >= last, patienceMs);
      watch.check(acknowledged);
      histories.push(watch.history(last));
    }
    if (new Set(histories).size !== 1) throw new Error(`watches saw different histories: ${difference(histories)}`);
    await checkOutcome(leader, last, fresh[0] as LastingWatch);
    await cluster.checkSameState();
  } finally {
    for (const watch of fresh) watch.stop();
  }
}

/** The first line that differs between histories, with each history's version of it. */
function difference(histories: readonly string[]): string {
  const lines = histories.map((history) => history.split('\n'));
  const at = (lines[0] ?? []).findIndex((line, index) => lines.some((other) => other[index] !== line));
  return lines.map((each) => `${each.length} events, ${each[at]}`).join('; ');
}

async function checkOutcome(member: ClusterMember, revision: number, watch: LastingWatch): Promise<void> {
  const all = Buffer.alloc(1);
  const { kvs } = await member.kv.range({ key: all, rangeEnd: all, revision: BigInt(revision) });
  const held = kvs.map(({ key, value }) => `${Buffer.from(key).toString()}=${Buffer.from(value).toString()}`);
  const told = [...watch.outcome(revision)].map(([key, value]) => `${key}=${value}`);
  if (held.toSorted().join('\n') !== told.toSorted().join('\n')) {
    throw new Error('the state is not the result of the watched history');
  }
}
