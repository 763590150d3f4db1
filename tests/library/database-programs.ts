import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether tests with a real database can run: says why not, and fails instead where everything must be there. */
export function hasProgram(path: string | undefined, debianPackage: string): boolean {
  if (path !== undefined) return true;
  const message = `Debian's package ${debianPackage} is not installed`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`skipped: ${message}`);
  return false;
}

/** A program that runs as the user whom Debian made for it, since databases refuse to run as root. */
export class DatabaseProgram {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  #isEnded = false;
  #log = '';

  constructor(user: string, program: string, args: readonly string[]) {
    const [command, ...all] = asUser(user, program, args);
    this.#process = spawn(command, all, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', (text: Buffer) => (this.#log = `${this.#log}${text.toString()}`.slice(-10_000)));
    }
    this.#ended = new Promise((resolve) => this.#process.once('exit', () => resolve()));
    void this.#ended.then(() => (this.#isEnded = true));
  }

  /** Resolves when it answers; rejects with what it printed when it ends instead. */
  async answers(isAnswering: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await isAnswering();
        return;
      } catch (error) {
        if (this.#isEnded) throw new Error(`the database did not start:\n${this.#log}`, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal);
    await this.#ended;
  }
}

export function runAs(user: string, program: string, args: readonly string[]): void {
  const [command, ...all] = asUser(user, program, args);
  execFileSync(command, all, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
}

/** A folder that the user owns, and the function that removes it. */
export function temporaryFolder(user: string): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tenure-database-'));
  if (process.getuid?.() === 0) {
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
    chownSync(path, idOf('-u'), idOf('-g'));
  }
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function asUser(user: string, program: string, args: readonly string[]): [string, ...string[]] {
  if (process.getuid?.() !== 0) return [program, ...args];
  return ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', program, ...args];
}
