import { execFileSync } from 'node:child_process';
import { chownSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from './server-process.ts';

/** The user whom Debian made for a database, since databases refuse to run as root. */
export class DatabaseUser {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  command(path: string, args: readonly string[]): Command {
    if (process.getuid?.() !== 0) return { program: path, args };
    const as = [`--reuid=${this.#name}`, `--regid=${this.#name}`, '--init-groups'];
    return { program: 'setpriv', args: [...as, path, ...args] };
  }

  /** A new folder that belongs to the user. */
  folder(prefix: string): string {
    const folder = mkdtempSync(join(tmpdir(), prefix));
    if (process.getuid?.() !== 0) return folder;
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, this.#name], { encoding: 'utf8' }));
    chownSync(folder, idOf('-u'), idOf('-g'));
    return folder;
  }
}
