import type { MessageShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { ClientSession, CommandContext } from '../command-context.ts';
import { formatDuration, parseDurationMs } from '../duration.ts';
import { formatLeaseId, parseLeaseId } from '../lease-id.ts';
import { LeaseRenewals } from './lease-renewals.ts';

type GrantReply = MessageShape<typeof etcdserverpb.LeaseGrantResponseSchema>;
type TimeToLiveReply = MessageShape<typeof etcdserverpb.LeaseTimeToLiveResponseSchema>;

const { Lease } = etcdserverpb;

/** `tenure lease ...` */
export function addLeaseCommands(program: Command, context: CommandContext): void {
  const lease = program.command('lease').description('grant, renew, look at and revoke leases');
  addGrant(lease, context);
  addKeepAlive(lease, context);
  addTimeToLive(lease, context);
  lease
    .command('revoke')
    .description('end a lease and delete its keys')
    .argument('<ID>', 'lease id in hex', parseLeaseId)
    .action((id: bigint, _options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Lease.method.leaseRevoke, { ID: id });
        const simple = () => [`lease ${formatLeaseId(id)} revoked`];
        await output.reply(etcdserverpb.LeaseRevokeResponseSchema, reply, simple);
      }),
    );
  lease
    .command('list')
    .description('list the ids of all leases')
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Lease.method.leaseLeases, {});
        const ids = reply.leases.map((each) => formatLeaseId(each.ID));
        const simple = () => [`found ${ids.length} leases`, ...ids];
        await output.reply(etcdserverpb.LeaseLeasesResponseSchema, reply, simple);
      }),
    );
}

function addGrant(lease: Command, context: CommandContext): void {
  lease
    .command('grant')
    .description('create a lease')
    .argument('<TTL>', 'seconds, such as 60, or a duration, such as 500ms', (text) => parseDurationMs('TTL', text))
    .option('--id <ID>', 'id of the lease, in hex (default: the server chooses)', parseLeaseId)
    .option('--label <TEXT>', 'purpose of the lease, shown in listings (Tenure only)')
    .action((ttlMs: number, options: { id?: bigint; label?: string }, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const reply = await client.call(Lease.method.leaseGrant, {
          // etcd reads only the seconds. They are rounded up, since a longer lease is the safe side.
          TTL: BigInt(Math.ceil(ttlMs / 1000)),
          TTLMs: ttlMs % 1000 === 0 ? 0n : BigInt(ttlMs),
          ID: options.id ?? 0n,
          label: options.label ?? '',
        });
        const grantedMs = grantedTtlMs(reply);
        if (grantedMs !== ttlMs)
          context.note(`the server granted ${formatDuration(grantedMs)} instead of ${formatDuration(ttlMs)}`);
        const simple = () => [`lease ${formatLeaseId(reply.ID)} granted with TTL(${formatDuration(grantedMs)})`];
        await output.reply(etcdserverpb.LeaseGrantResponseSchema, reply, simple);
      }),
    );
}

function grantedTtlMs(reply: GrantReply): number {
  return reply.TTLMs === 0n ? Number(reply.TTL) * 1000 : Number(reply.TTLMs);
}

function addKeepAlive(lease: Command, context: CommandContext): void {
  lease
    .command('keep-alive')
    .description('renew a lease until the command is stopped')
    .argument('<ID>', 'lease id in hex', parseLeaseId)
    .option('--once', 'renew it once')
    .action((id: bigint, options: { once?: boolean }, command: Command) =>
      context.withClient(command, async (session) => keepAlive(session, id, options.once === true)),
    );
}

async function keepAlive({ client, output }: ClientSession, id: bigint, once: boolean): Promise<void> {
  const renewals = new LeaseRenewals(client, id);
  for await (const { reply, ttlMs } of renewals.run(once)) {
    if (ttlMs <= 0) throw new CliError('failed', `lease ${formatLeaseId(id)} expired or revoked.`);
    const simple = () => [`lease ${formatLeaseId(id)} keepalived with TTL(${formatTtl(ttlMs)})`];
    await output.reply(etcdserverpb.LeaseKeepAliveResponseSchema, reply, simple);
  }
}

// etcdctl prints the seconds of a renewal without a unit, and scripts match that.
function formatTtl(ttlMs: number): string {
  return ttlMs % 1000 === 0 ? String(ttlMs / 1000) : formatDuration(ttlMs);
}

function addTimeToLive(lease: Command, context: CommandContext): void {
  lease
    .command('timetolive')
    .description('show the remaining time of a lease')
    .argument('<ID>', 'lease id in hex', parseLeaseId)
    .option('--keys', 'show the keys attached to it')
    .action((id: bigint, options: { keys?: boolean }, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const request = { ID: id, keys: options.keys === true };
        const reply = await client.call(Lease.method.leaseTimeToLive, request);
        const simple = () => [timeToLiveLine(id, reply, request.keys)];
        await output.reply(etcdserverpb.LeaseTimeToLiveResponseSchema, reply, simple);
      }),
    );
}

function timeToLiveLine(id: bigint, reply: TimeToLiveReply, withKeys: boolean): string {
  if (reply.grantedTTL === 0n && reply.TTL < 0n) return `lease ${formatLeaseId(id)} already expired`;
  const grantedMs = reply.grantedTTLMs === 0n ? Number(reply.grantedTTL) * 1000 : Number(reply.grantedTTLMs);
  const remainingMs = reply.TTLMs === 0n ? Number(reply.TTL) * 1000 : Number(reply.TTLMs);
  const granted = `granted with TTL(${formatDuration(grantedMs)}), remaining(${formatDuration(remainingMs)})`;
  const label = reply.label === '' ? '' : `, label(${reply.label})`;
  const keys = reply.keys.map((key) => Buffer.from(key).toString()).join(' ');
  return `lease ${formatLeaseId(id)} ${granted}${label}${withKeys ? `, attached keys([${keys}])` : ''}`;
}
