import type { Command } from 'commander';
import type { EtcdError, ServerStatus } from 'tenure/etcd';
import { exitCodes } from '../cli-error.ts';
import type { CommandContext } from '../command-context.ts';

type Status = ServerStatus | { readonly endpoint: string; readonly error: string };

/** `tenure status` */
export function addStatusCommand(program: Command, context: CommandContext): void {
  program
    .command('status')
    .description(`show the status of every endpoint; exit code ${exitCodes.unreachable} when one does not answer`)
    .action((_options: unknown, command: Command) =>
      context.withClient(command, async ({ client, output }) => {
        const results = await client.maintenance.statuses();
        const statuses = results.map((result): Status => {
          return result.status === 'fulfilled' ? result.value : unanswered(result.reason as EtcdError);
        });
        await output.value(statuses, () => statuses.map(statusLine));
        if (statuses.some((status) => 'error' in status)) context.exitCode = exitCodes.unreachable;
      }),
    );
}

function unanswered({ endpoint, details }: EtcdError): Status {
  return { endpoint, error: details };
}

function statusLine(status: Status): string {
  if ('error' in status) return `${status.endpoint}, does not answer: ${status.error}`;
  const { endpoint, memberId, leader, version, tenureVersion, dbSizeBytes, raftTerm, raftIndex, revision } = status;
  const role = leader === 0n ? 'no leader' : leader === memberId ? 'leader' : 'follower';
  const program = tenureVersion === undefined ? `etcd ${version}` : `Tenure ${tenureVersion}`;
  const numbers = `revision ${revision}, term ${raftTerm}, index ${raftIndex}, ${dbSizeBytes} bytes`;
  return [endpoint, memberId.toString(16), program, role, numbers, ...status.errors].join(', ');
}
