import type { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../command-context.ts';
import { loadServer, type ServerModule } from '../load-server.ts';
import { explained } from './explained.ts';
import { numberOption } from './number-option.ts';

type LogReport = Awaited<ReturnType<ServerModule['verifyLog']>>;
type DescribedEntry = ReturnType<ServerModule['describeLog']> extends AsyncIterable<infer Entry> ? Entry : never;

interface DumpOptions {
  readonly dataDir: string;
  readonly from?: bigint;
  readonly to?: bigint;
}

/** `tenure log ...` */
export function addLogCommands(program: Command, context: CommandContext): void {
  const log = program.command('log').description('inspect and repair the log in the data folder of a server');
  const folder = context.io.env['TENURE_DATA_DIR'] || 'tenure-data';
  const dataDir = ['--data-dir <DIR>', 'data folder of the server [TENURE_DATA_DIR]', folder] as const;
  log
    .command('verify')
    .description('check everything in the data folder, and change nothing; exit code 1 when something is damaged')
    .option(...dataDir)
    .action(async (options: { dataDir: string }, command: Command) => {
      const { verifyLog } = await loadServer();
      const report = await explained(() => verifyLog(options.dataDir));
      await context.output(command).value(report, () => reportLines(report));
      if (report.damage.length > 0) throw new CliError('failed', `${report.folder} is damaged`);
    });
  log
    .command('dump')
    .description('show the entries of the log, one a line, without values')
    .option(...dataDir)
    .option('--from <INDEX>', 'from this entry on', numberOption('--from'))
    .option('--to <INDEX>', 'up to this entry', numberOption('--to'))
    .action((options: DumpOptions, command: Command) => dump(options, command, context));
  log
    .command('truncate')
    .description('drop all entries after one, acknowledged or not; a copy is kept in the data folder')
    .option(...dataDir)
    .requiredOption('--after <INDEX>', 'the last entry to keep', numberOption('--after'))
    .action(async (options: { dataDir: string; after: bigint }, command: Command) => {
      const { truncateLog } = await loadServer();
      const done = await explained(() => truncateLog(options.dataDir, Number(options.after)));
      await context
        .output(command)
        .value(done, () => [
          `the log ends behind entry ${done.lastIndex} now`,
          `the previous files are in ${done.copyFolder}: ${done.files.join(', ')}`,
        ]);
    });
}

async function dump(options: DumpOptions, command: Command, context: CommandContext): Promise<void> {
  const output = context.output(command);
  const { describeLog } = await loadServer();
  const range = {
    ...(options.from === undefined ? {} : { from: Number(options.from) }),
    ...(options.to === undefined ? {} : { to: Number(options.to) }),
  };
  await explained(async () => {
    for await (const entry of describeLog(options.dataDir, range)) await output.value(entry, () => [entryLine(entry)]);
  });
}

function entryLine({ index, epoch, timeMs, commands }: DescribedEntry): string {
  const when = epoch === undefined ? '' : ` epoch ${epoch} at ${timeMs} ms`;
  return `${index}${when}: ${commands.join('; ')}`;
}

function reportLines(report: LogReport): string[] {
  const { segments, entries, firstIndex, lastIndex, snapshot, unfinished, damage } = report;
  const range = entries === 0 ? '' : `, from ${firstIndex} to ${lastIndex}`;
  const lines = [`${report.folder}: ${entries} entries in ${segments.length} files${range}`];
  if (report.inUse) lines.push('a server is running on it: what it writes now may show as unfinished');
  if (snapshot !== undefined) lines.push(`snapshot of entry ${snapshot.position.index}, ${snapshot.fileBytes} bytes`);
  if (unfinished !== undefined) {
    const { file, offset, bytes, why } = unfinished;
    lines.push(`unfinished append of ${bytes} bytes in ${file} at ${offset} (${why}): the next start cuts it off`);
  }
  for (const { file, offset, what } of damage) lines.push(`DAMAGED: ${file} at ${offset}: ${what}`);
  if (damage.length === 0) return [...lines, 'no damage'];
  return [
    ...lines,
    `the entries up to ${report.recoverableIndex} can be kept: ` +
      `tenure log truncate --data-dir ${report.folder} --after ${report.recoverableIndex}`,
  ];
}
