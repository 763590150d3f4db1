import { execFile, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Whom Debian made to run the servers, since PostgreSQL refuses to run as root. */
export const postgresUser = 'postgres';

/** Where Debian puts the programs of the newest version; undefined when PostgreSQL is not installed. */
function programFolder(): string | undefined {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return undefined;
  const newest = readdirSync(versions).sort((one, other) => Number(other) - Number(one))[0];
  const folder = join(versions, newest ?? '', 'bin');
  return existsSync(join(folder, 'initdb')) ? folder : undefined;
}

/** Whether tests with a real database can run; says why not, and fails instead where everything must be there. */
export function hasPostgres(): boolean {
  if (programFolder() !== undefined) return true;
  const message = 'PostgreSQL is not installed (Debian package postgresql)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`skipped: ${message}`);
  return false;
}

export function postgresProgram(name: string): string {
  const folder = programFolder();
  if (folder === undefined) throw new Error('PostgreSQL is not installed');
  return join(folder, name);
}

/** Runs a program to its end as the user of the servers and gives what it prints. */
export async function runAsPostgres(program: string, ...args: readonly string[]): Promise<string> {
  const [command, ...all] = asPostgres(program, args);
  return (await run(command, all, { cwd: '/' })).stdout;
}

export function spawnAsPostgres(program: string, ...args: readonly string[]) {
  const [command, ...all] = asPostgres(program, args);
  return spawn(command, all, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
}

function asPostgres(program: string, args: readonly string[]): [string, ...string[]] {
  if (process.getuid?.() !== 0) return [program, ...args];
  const as = [`--reuid=${postgresUser}`, `--regid=${postgresUser}`, '--init-groups'];
  // A server ends, as in a crash, with the process that started it, also when that was killed.
  return ['setpriv', ...as, '--pdeathsig', 'SIGQUIT', program, ...args];
}

/** A new folder that belongs to the user of the servers. */
export function postgresFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-postgres-'));
  if (process.getuid?.() === 0) {
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, postgresUser], { encoding: 'utf8' }));
    chownSync(folder, idOf('-u'), idOf('-g'));
  }
  return folder;
}

/** A port that was free a moment ago: PostgreSQL does not choose one for itself. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
