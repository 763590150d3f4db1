import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

/** The size of the kept output, its end, for reports and for waiting tests. */
const maxKeptChars = 4 * 1024 * 1024;
/** A process that does not end when told to is killed, so that a test fails instead of hanging. */
const endTimeoutMs = 60_000;
const retryMs = 10;

/** A program and its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

export interface ChildOptions extends Command {
  /** Without it, that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Whether stdout is discarded, so that a measurement does not pay for it. */
  readonly isSilent?: boolean;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** Living children: none may outlive the process that started them, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Makes a child end with this process at the latest. For a child started by other means, such as a fork. */
export function endWithUs<T extends ChildProcess>(child: T): T {
  alive.add(child);
  child.once('exit', () => alive.delete(child));
  return child;
}

/** A program as a child process: its output is kept and can be awaited, and it ends with this process. */
export class ChildProgram {
  readonly ended: Promise<ProgramEnd>;
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #waiting = new Set<() => void>();
  #out = '';
  #err = '';
  #hasEnded = false;

  constructor({ program, args, env = process.env, cwd, isSilent = false }: ChildOptions) {
    this.#name = program;
    this.#child = endWithUs(
      spawn(program, args, { stdio: ['ignore', isSilent ? 'ignore' : 'pipe', 'pipe'], env, cwd }),
    );
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out = kept(this.#out + text);
      this.#wake();
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#err = kept(this.#err + text);
      this.#wake();
    });
    this.ended = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.#hasEnded = true;
        resolve({ code, signal, out: this.#out, err: this.#err });
        this.#wake();
      };
      this.#child.once('error', (error) => {
        this.#err += error.message;
        if (this.#child.pid === undefined) end(null, null);
      });
      this.#child.once('close', end);
    });
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.#name} was not started: ${this.#err}`);
    return pid;
  }

  get out(): string {
    return this.#out;
  }

  get err(): string {
    return this.#err;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Resolves with its stdout once that contains `text`; rejects when it ends without. */
  async printed(text: string | RegExp): Promise<string> {
    await this.#until(String(text), () => (typeof text === 'string' ? this.#out.includes(text) : text.test(this.#out)));
    return this.#out;
  }

  /** The first match in its output, at any place; rejects when it ends without one, or at the timeout. */
  async match(pattern: RegExp, timeoutMs: number): Promise<RegExpExecArray> {
    const find = (): RegExpExecArray | null => pattern.exec(this.#out) ?? pattern.exec(this.#err);
    await this.#until(String(pattern), () => find() !== null, timeoutMs);
    return find() as RegExpExecArray;
  }

  /** Resolves when it first responds; an error of the check counts as no. */
  async answers(isAnswering: () => Promise<unknown>, timeoutMs: number): Promise<void> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const answer = await isAnswering().catch((error: unknown) => ({ error }));
      if (answer !== false && !isError(answer)) return;
      const cause = isError(answer) ? answer.error : undefined;
      if (this.#hasEnded) throw this.#failure('ended before it answered', cause);
      if (performance.now() >= untilMs) throw this.#failure('does not answer', cause);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  /** Sends a signal that does not end it. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends the signal, kills it when that has no effect, and resolves with how it ended. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<ProgramEnd> {
    this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), endTimeoutMs);
    const end = await this.ended;
    clearTimeout(timer);
    return end;
  }

  async #until(what: string, isSo: () => boolean, timeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    const untilMs = performance.now() + timeoutMs;
    while (!isSo()) {
      if (this.#hasEnded) throw this.#failure(`ended without ${what}`);
      if (performance.now() >= untilMs) throw this.#failure(`has not printed ${what} in time`);
      await this.#change(untilMs - performance.now());
    }
  }

  #failure(what: string, cause?: unknown): Error {
    return new Error(`${this.#name} ${what}:\n${this.#out}${this.#err}`, { cause });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Until it prints more, ends, or the time has passed. */
  async #change(timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    let wake = (): void => undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      this.#waiting.add(wake);
      if (timeoutMs !== Number.POSITIVE_INFINITY) timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
    this.#waiting.delete(wake);
  }
}

/** Truncated only now and then, since truncation copies the whole buffer. */
function kept(text: string): string {
  return text.length > 2 * maxKeptChars ? text.slice(-maxKeptChars) : text;
}

function isError(answer: unknown): answer is { readonly error: unknown } {
  return typeof answer === 'object' && answer !== null && 'error' in answer;
}
