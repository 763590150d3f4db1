import { execFile, execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from './child-program.ts';

const run = promisify(execFile);

/** The user created by Debian for a database, since databases refuse to run as root. */
export class SystemUser {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** `atOurEnd` is the signal sent to it when the process that started it ends, also when that was killed. */
  command(program: string, args: readonly string[], atOurEnd: NodeJS.Signals = 'SIGKILL'): Command {
    if (process.getuid?.() !== 0) return { program, args };
    const as = [`--reuid=${this.name}`, `--regid=${this.name}`, '--init-groups', '--pdeathsig', atOurEnd];
    return { program: 'setpriv', args: [...as, program, ...args] };
  }

  /** Runs a program to its end and returns its output. */
  async run(path: string, ...args: readonly string[]): Promise<string> {
    const { program, args: all } = this.command(path, args);
    return (await run(program, all, { cwd: '/' })).stdout;
  }

  /** A new folder that belongs to the user. */
  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), `tenure-${this.name}-`));
    if (process.getuid?.() !== 0) return folder;
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, this.name], { encoding: 'utf8' }));
    chownSync(folder, idOf('-u'), idOf('-g'));
    return folder;
  }
}
