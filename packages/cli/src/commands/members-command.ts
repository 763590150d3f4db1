import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import type { Member } from 'tenure';
import type { ClientSession, CommandContext } from '../command-context.ts';
import { withLeases } from '../lease-session.ts';

/** `tenure members`: the members of a group of programs, or without a group the servers of the cluster. */
export function addMembersCommand(program: Command, context: CommandContext): void {
  program
    .command('members')
    .description('show the members of a group that programs have joined; without GROUP, the servers of the cluster')
    .argument('[GROUP]')
    .action((group: string | undefined, _options: unknown, command: Command) =>
      context.withClient(command, (session) => (group === undefined ? servers(session) : members(session, group))),
    );
}

async function members({ client, output }: ClientSession, group: string): Promise<void> {
  await withLeases(client, {}, async (leases) => {
    // `membership` waits through outages. This read reports an outage instead.
    await leases.inspect(group);
    // A member that is not eligible still sees the others.
    await using membership = await leases.membership(group, { eligible: () => false });
    const { snapshot } = membership;
    await output.value(snapshot, () => snapshot.members.map(memberLine));
  });
}

function memberLine({ id, weight, holder, metadata }: Member): string {
  return `${id}, weight ${weight}, holder ${holder}, ${JSON.stringify(metadata)}`;
}

/** In the format of `etcdctl member list`. */
async function servers({ client, output }: ClientSession): Promise<void> {
  const reply = await client.call(etcdserverpb.Cluster.method.memberList, {});
  await output.reply(etcdserverpb.MemberListResponseSchema, reply, () => reply.members.map(serverLine));
}

function serverLine(member: etcdserverpb.Member): string {
  const { ID, name, peerURLs, clientURLs, isLearner, unreachable } = member;
  const state = name === '' ? 'unstarted' : unreachable ? 'unreachable' : 'started';
  return [ID.toString(16), state, name, peerURLs.join(','), clientURLs.join(','), isLearner].join(', ');
}
