import { type ChildProcess, spawn } from 'node:child_process';
import { testedCommand } from './harness/tested-command.ts';

const readyPattern = /ready to serve client requests on (\S+)/;

export interface ServeEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** Children still alive: none may outlive the test process, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** The built command as a process of its own. */
export class ServeProcess {
  readonly ended: Promise<ServeEnd>;
  readonly #child: ChildProcess;
  #out = '';
  #err = '';
  #wake: () => void = () => undefined;
  #isOver = false;

  /**
   * `args` are those of the whole command: ['serve', ...]. `under` is a command that runs it, such as a tracer, and
   * must leave it the process that was started.
   */
  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, under: readonly string[] = []) {
    const { PATH = '' } = process.env;
    const [program = process.execPath, ...rest] = [...under, process.execPath, testedCommand(), ...args];
    const child = spawn(program, rest, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH, ...env },
    });
    this.#child = child;
    alive.add(child);
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text;
      this.#wake();
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#err += text));
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        alive.delete(child);
        this.#isOver = true;
        this.#wake();
        resolve({ code, signal, out: this.#out, err: this.#err });
      });
    });
  }

  get err(): string {
    return this.#err;
  }

  /** Resolves with the URLs that it serves on; rejects when it ends before. */
  async ready(): Promise<readonly string[]> {
    for (;;) {
      const urls = readyPattern.exec(this.#out)?.[1];
      if (urls !== undefined) return urls.split(',');
      if (this.#isOver) throw new Error(`it ended before it was ready: ${this.#out}${this.#err}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves with all that it has printed once that has `text`; rejects when it ends without. */
  async printed(text: string | RegExp): Promise<string> {
    const has = (): boolean => (typeof text === 'string' ? this.#out.includes(text) : text.test(this.#out));
    while (!has()) {
      if (this.#isOver) throw new Error(`it ended without ${String(text)}: ${this.#out}${this.#err}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#out;
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('the process was not started');
    return pid;
  }

  /** Sends a signal that does not end it. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends the signal and resolves with how it ended. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<ServeEnd> {
    this.#child.kill(signal);
    return this.ended;
  }
}
