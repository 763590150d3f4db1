import { CliError, exitCodes } from '../cli-error.ts';
import type { CommandIo } from '../command-io.ts';
import { loadServer, type ServerModule } from '../load-server.ts';
import { version } from '../version.ts';

type ConfigOutcome = ReturnType<ServerModule['parseServerConfig']>;
type ServerConfig = Extract<ConfigOutcome, { kind: 'config' }>['config'];
type RunningServer = Awaited<ReturnType<ServerModule['serve']>>;

/**
 * The limit from the signal on, slightly longer than the server's own limit for closing. Then the process ends in any
 * case.
 */
const closeTimeoutMs = 4800;

/** `tenure serve`: runs until a signal (0) or a failure (1). `argv` has the arguments after `serve`. */
export async function serveCommand(argv: readonly string[], io: CommandIo): Promise<number> {
  const server = await loadServer();
  const outcome = server.parseServerConfig({ argv, env: io.env });
  if (outcome.kind !== 'config') return answerAtOnce(outcome, io);
  for (const warning of outcome.warnings) io.stderr.write(`Warning: ${warning}\n`);
  // Signals are handled before the start, so that one that arrives during the replay of the log is not lost.
  const signal = new StopSignal();
  try {
    const starting = start(server, outcome.config, io);
    const running = await Promise.race([starting, signal.timeIsUp]);
    if (running === 'late') {
      // The start may wait for its log forever. Ending it loses no request, since it has not accepted any.
      io.stderr.write('Warning: the server was stopped before it was ready\n');
      return 0;
    }
    io.stdout.write(`ready to serve client requests on ${running.urls.join(',')}\n`);
    return await runUntilStopped(running, signal, io);
  } finally {
    signal.release();
  }
}

function answerAtOnce(outcome: Exclude<ConfigOutcome, { kind: 'config' }>, io: CommandIo): number {
  switch (outcome.kind) {
    case 'help':
      io.stdout.write(`${outcome.text}\n`);
      return 0;
    case 'version':
      io.stdout.write(`${version}\n`);
      return 0;
    case 'refused':
      io.stderr.write(`Error: ${outcome.message}\n`);
      return exitCodes.usage;
  }
}

async function start(server: ServerModule, config: ServerConfig, io: CommandIo): Promise<RunningServer> {
  try {
    return await server.serve(config, io);
  } catch (error) {
    throw new CliError('failed', explainStart(error), { cause: error });
  }
}

function explainStart(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'EADDRINUSE') {
    const flags = '--listen-client-urls or --listen-peer-urls';
    return `${error.message}: another process listens there; stop it, or change ${flags}`;
  }
  return error.message;
}

async function runUntilStopped(running: RunningServer, signal: StopSignal, io: CommandIo): Promise<number> {
  const failure = await Promise.race([running.failed, signal.received.then(() => undefined)]);
  if (failure !== undefined) {
    io.stderr.write(`Error: the server stopped: ${failure.message}\n`);
    return exitCodes.failed;
  }
  const end = await Promise.race([running.close(), signal.timeIsUp]);
  // Acknowledged writes are durable, so ending now loses nothing.
  if (end === 'late') io.stderr.write('Warning: some streams did not end in time and were cut\n');
  return 0;
}

/** The first SIGTERM or SIGINT closes the server; a second one ends the process at once. */
class StopSignal {
  readonly received: Promise<void>;
  /** Resolves when the limit after the first signal has passed, and the process ends whatever it waits for. */
  readonly timeIsUp: Promise<'late'>;
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #resolve: () => void = () => undefined;
  readonly #onSignal = (): void => {
    this.#count += 1;
    if (this.#count > 1) process.exit(1);
    this.#resolve();
  };

  constructor() {
    this.received = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.timeIsUp = this.received.then(
      () => new Promise((resolve) => (this.#timer = setTimeout(resolve, closeTimeoutMs, 'late'))),
    );
    process.on('SIGTERM', this.#onSignal).on('SIGINT', this.#onSignal);
  }

  release(): void {
    clearTimeout(this.#timer);
    process.off('SIGTERM', this.#onSignal).off('SIGINT', this.#onSignal);
  }
}
