import { spawn, type ChildProcess } from 'node:child_process';

const maxKeptOutputChars = 256 * 1024;
const stopGraceMs = 10_000;

/** Children still alive: none may outlive the test process, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** A server as a child process: its output is kept for reports, and lines of it can be awaited. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<string>;
  #output = '';
  #wake: () => void = () => {};

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.#child = spawn(program, [...args], { stdio: ['ignore', 'pipe', 'pipe'], env });
    alive.add(this.#child);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8');
      stream?.on('data', (chunk: string) => {
        this.#output = (this.#output + chunk).slice(-maxKeptOutputChars);
        this.#wake();
      });
    }
    this.#exited = new Promise((resolve) => {
      const ended = (how: string): void => {
        alive.delete(this.#child);
        resolve(how);
      };
      this.#child.once('error', (error) => ended(error.message));
      this.#child.once('exit', (code, signal) => ended(`exit code ${code}, signal ${signal}`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get output(): string {
    return this.#output;
  }

  /** The first match in the output; rejects with the whole output when the process ends first or the time is up. */
  async waitForOutput(pattern: RegExp, timeoutMs: number): Promise<RegExpExecArray> {
    const deadline = performance.now() + timeoutMs;
    let end: string | undefined;
    void this.#exited.then((how) => {
      end = how;
      this.#wake();
    });
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      const leftMs = deadline - performance.now();
      if (end !== undefined || leftMs <= 0) {
        throw new Error(`no output like ${pattern} (${end ?? 'time is up'}). It printed:\n${this.#output}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** SIGTERM, then SIGKILL after a grace period. Resolves when the process is gone, with how it ended. */
  async stop(): Promise<string> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopGraceMs);
    const how = await this.#exited;
    clearTimeout(timer);
    return how;
  }
}
