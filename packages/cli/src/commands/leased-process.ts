import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';

/** The exit codes of shells for a command that can't be run. */
const cannotRun = 126;
const notFound = 127;
/** Shells add the number of the signal that ended the command. */
const signalBase = 128;

/**
 * A command that runs with the input and output of this process. Signals reach everything that it has started, too,
 * unless it runs at a terminal, where it stays in the foreground with this process.
 */
export class LeasedProcess {
  /** Resolves with its exit code, as a shell gives it, once it has ended or could not be started. */
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;
  readonly #isGroup = !process.stdin.isTTY && process.platform !== 'win32';
  #isOver = false;
  #killTimer: NodeJS.Timeout | undefined;

  /** `onFailure` gets the reason when the command can't be started. */
  constructor(
    argv: readonly string[],
    env: Readonly<Record<string, string | undefined>>,
    onFailure: (words: string) => void,
  ) {
    const [program = '', ...args] = argv;
    this.#child = spawn(program, args, { stdio: 'inherit', env, detached: this.#isGroup });
    this.ended = new Promise((resolve) => {
      const end = (code: number): void => {
        this.#isOver = true;
        clearTimeout(this.#killTimer);
        resolve(code);
      };
      this.#child.on('error', (error: NodeJS.ErrnoException) => {
        if (this.#child.pid !== undefined) return;
        onFailure(`${program}: ${error.code === 'ENOENT' ? 'not found' : error.message}`);
        end(error.code === 'ENOENT' ? notFound : cannotRun);
      });
      this.#child.on('exit', (code, signal) => end(code ?? exitCodeOf(signal ?? 'SIGKILL')));
    });
  }

  /** A terminal sends its signals to the whole foreground process group itself. */
  forward(signal: NodeJS.Signals): void {
    const isFromTerminal = process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT');
    if (!isFromTerminal && !this.#isOver) this.#send(signal);
  }

  /** Sends SIGTERM, and after `graceMs` SIGKILL, to the command, without a terminal to its whole process group. */
  stop(graceMs: number): void {
    if (this.#isOver) return;
    this.#send('SIGTERM');
    // A stopped process reacts to SIGTERM only after SIGCONT.
    this.#send('SIGCONT');
    this.#killTimer = setTimeout(() => this.#send('SIGKILL'), graceMs);
    // Its remaining children have no lease either.
    void this.ended.then(() => this.#isGroup && this.#send('SIGKILL'));
  }

  #send(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(this.#isGroup ? -pid : pid, signal);
    } catch {
      // The process has ended in the meantime.
    }
  }
}

export function exitCodeOf(signal: NodeJS.Signals): number {
  return signalBase + constants.signals[signal];
}
