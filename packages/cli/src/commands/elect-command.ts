import type { Command } from 'commander';
import type { Election, Leader, WaitMode } from 'tenure';
import { CliError, exitCodes } from '../cli-error.ts';
import type { CommandContext } from '../command-context.ts';
import { parseTtl, parseWait, ttlDefault, withLeases } from '../lease-session.ts';
import type { Output } from '../output/output.ts';
import { stopSignals, takeSignals } from '../stop-signals.ts';

interface ElectOptions {
  readonly ttl: number;
  readonly wait: WaitMode;
  readonly listen?: boolean;
}

const afterHelp = `
Exit codes: 0 stopped by a signal (a leader resigns), ${exitCodes['not-acquired']} not elected in time, \
${exitCodes.lost} no longer the leader, and those of tenure --help.

  tenure elect scheduler 10.0.0.7:8080      lead as soon as there is no other leader
  tenure elect scheduler --listen           show the leader, and every change
`;

/** `tenure elect` */
export function addElectCommand(program: Command, context: CommandContext): void {
  program
    .command('elect')
    .description('take part in an election and lead until the command is stopped; or show the leader')
    .argument('<NAME>', 'name of the election')
    .argument('[VALUE]', 'text that all clients can read, such as the address of the leader')
    .option('-l, --listen', 'take no part; show the leader and every change')
    .option('--ttl <DURATION>', 'how long a leadership lasts after its last renewal', parseTtl, parseTtl(ttlDefault))
    .option('--wait <DURATION>', 'how long to wait: none, forever or a duration', parseWait, 'forever')
    .addHelpText('after', afterHelp)
    .action((name: string, value: string | undefined, options: ElectOptions, command: Command) => {
      const isListening = options.listen === true;
      if (isListening === (value !== undefined)) throw new CliError('usage', 'give a VALUE, or --listen');
      return context.withClient(command, ({ client, output }) =>
        withLeases(client, { ttlMs: options.ttl }, async (leases) => {
          const election = leases.election(name);
          const stopped = new AbortController();
          using _taken = takeSignals(stopSignals, () => stopped.abort());
          try {
            if (value === undefined) await listen(election, output, stopped.signal);
            else await lead(election, value, { output, wait: options.wait, stopped: stopped.signal });
          } catch (error) {
            // A stop signal is the normal end of both.
            if (!stopped.signal.aborted) throw error;
          }
        }),
      );
    });
}

async function listen(election: Election, output: Output, stopped: AbortSignal): Promise<void> {
  // `observe` waits through outages. This read reports an outage at the start.
  await election.leader();
  for await (const leader of election.observe({ signal: stopped })) await showLeader(election.name, leader, output);
}

interface Candidacy {
  readonly output: Output;
  readonly wait: WaitMode;
  readonly stopped: AbortSignal;
}

async function lead(election: Election, value: string, { output, wait, stopped }: Candidacy): Promise<void> {
  const leadership = await election.campaign(value, { wait, signal: stopped });
  const { holder, fencingToken } = leadership;
  await showLeader(election.name, { holder, value, fencingToken }, output);
  const { signal } = leadership;
  await new Promise<void>((resolve) => {
    for (const ending of [signal, stopped]) {
      ending.addEventListener('abort', () => resolve(), { once: true });
      if (ending.aborted) resolve();
    }
  });
  if (!leadership.isHeld()) throw (await leadership.lost) ?? signal.reason;
  await leadership.resign();
}

async function showLeader(election: string, leader: Leader | null, output: Output): Promise<void> {
  await output.value({ election, leader }, () => [
    leader === null
      ? `${election} has no leader`
      : `${election} is led by ${leader.value}, token ${leader.fencingToken}, holder ${leader.holder}`,
  ]);
}
