import type { Command } from 'commander';
import type { Hold, LeaseManager, WaitMode } from 'tenure';
import { CliError, exitCodes } from '../cli-error.ts';
import type { CommandContext } from '../command-context.ts';
import { parseDurationMs } from '../duration.ts';
import { parseTtl, parseWait, ttlDefault, withLeases } from '../lease-session.ts';
import { stopSignals, takeSignals } from '../stop-signals.ts';
import { exitCodeOf, LeasedProcess } from './leased-process.ts';

interface LockOptions {
  readonly ttl: number;
  readonly wait: WaitMode;
  readonly killAfter?: number;
}

const forwardedSignals = [...stopSignals, 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;
/**
 * The library declares a lease lost when nine tenths of its TTL have passed without a renewal. The grace of the command
 * must fit into the last tenth, with a margin.
 */
const graceShareOfTtl = 1 / 15;

const afterHelp = `
COMMAND gets TENURE_LEASE_NAME and TENURE_FENCING_TOKEN in its environment, and the signals that are sent to tenure.
When the lease is lost it gets SIGTERM, and after the grace SIGKILL. If this process is killed with
-9, COMMAND runs on without a lease. The system that COMMAND writes to should check the fencing token.

Exit codes: that of COMMAND (128 and the number of the signal that ended it), and before it runs those of
tenure --help. ${exitCodes['not-acquired']} the lease was not acquired in time, ${exitCodes.lost} it was lost,
126 COMMAND cannot be run, 127 it is not found.

  tenure lock nightly --ttl 10s --wait 1m -- ./report.sh --all
`;

/** `tenure lock` */
export function addLockCommand(program: Command, context: CommandContext): void {
  program
    .command('lock')
    .description('run a command while holding a lease, and end it when the lease is lost')
    .argument('<NAME>', 'name of the lease')
    .argument('<COMMAND...>', 'the command to run, after --')
    .option('--ttl <DURATION>', 'how long the lease lasts after its last renewal', parseTtl, parseTtl(ttlDefault))
    .option('--wait <DURATION>', 'how long to wait for the lease: none, forever or a duration', parseWait, 'forever')
    .option('--kill-after <DURATION>', 'grace between SIGTERM and SIGKILL (default: a fifteenth of the TTL)', (text) =>
      parseDurationMs('--kill-after', text),
    )
    .addHelpText('after', afterHelp)
    .action((name: string, argv: string[], options: LockOptions, command: Command) =>
      context.withClient(stdinIsOfCommand(command), ({ client }) =>
        withLeases(client, { ttlMs: options.ttl }, async (leases) => {
          context.exitCode = await lock(leases, { name, argv, options, context });
        }),
      ),
    );
}

/** What this process has read of stdin is lost for COMMAND. */
function stdinIsOfCommand(command: Command): Command {
  if (command.optsWithGlobals<{ passwordStdin?: boolean }>().passwordStdin !== true) return command;
  throw new CliError('usage', 'stdin belongs to COMMAND: give the password in TENURE_PASSWORD');
}

interface LockJob {
  readonly name: string;
  readonly argv: readonly string[];
  readonly options: LockOptions;
  readonly context: CommandContext;
}

async function lock(leases: LeaseManager, job: LockJob): Promise<number> {
  const { name, options, context } = job;
  const stopped = new AbortController();
  let stoppedBy: NodeJS.Signals | undefined;
  let running: LeasedProcess | undefined = undefined;
  using _taken = takeSignals(forwardedSignals, (signal) => {
    if (running !== undefined) return running.forward(signal);
    if (!stopSignals.some((each) => each === signal)) return;
    stoppedBy = signal;
    stopped.abort();
  });
  let hold: Hold;
  try {
    const holder = (await leases.inspect(name))?.holder;
    if (holder !== undefined && options.wait !== 'none') context.note(`waiting for ${name}, which ${holder} holds`);
    hold = await leases.acquire(name, { wait: options.wait, signal: stopped.signal });
  } catch (error) {
    if (stoppedBy !== undefined) return exitCodeOf(stoppedBy);
    throw error;
  }
  // A signal may have arrived since the last check.
  if (stoppedBy !== undefined) return exitCodeOf(stoppedBy);
  running = new LeasedProcess(job.argv, environment(hold, context), (words) => context.note(`Error: ${words}`));
  return await untilEnd(hold, running, job);
}

/** The exit code of the command. Throws a CliError `lost` even if the command succeeded after the loss. */
async function untilEnd(hold: Hold, running: LeasedProcess, { name, options, context }: LockJob): Promise<number> {
  const lost = (): void => running.stop(options.killAfter ?? options.ttl * graceShareOfTtl);
  hold.signal.addEventListener('abort', lost, { once: true });
  if (hold.signal.aborted) lost();
  const exitCode = await running.ended;
  hold.signal.removeEventListener('abort', lost);
  // `isHeld` reads the clock, since this process may have been paused.
  if (!hold.isHeld()) {
    const loss = await hold.lost;
    throw new CliError('lost', loss?.message ?? `the lease ${name} was lost`);
  }
  await hold.release().catch((error: unknown) => {
    context.note(`${name} could not be released, and ends by itself: ${String(error)}`);
  });
  return exitCode;
}

function environment(hold: Hold, { io }: CommandContext): Record<string, string | undefined> {
  return { ...io.env, TENURE_LEASE_NAME: hold.name, TENURE_FENCING_TOKEN: String(hold.fencingToken) };
}
